// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4x5xf32>) -> tensor<2x1x4x5x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x3x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<1x3x4x5xf32> loc("conv2")
    %3 = "tensorop.permute"(%2) {order = [0, 2, 3, 1], source.tensor = "permute3.out"} : (tensor<1x3x4x5xf32>) -> tensor<1x4x5x3xf32> loc("permute3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<2x1x1x1x1xf32>
    %5 = "tensorop.add"(%3, %4) {source.tensor = "add5.out"} : (tensor<1x4x5x3xf32>, tensor<2x1x1x1x1xf32>) -> tensor<2x1x4x5x3xf32> loc("add5")
    "func.return"(%5) : (tensor<2x1x4x5x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after move-permutes
// unchanged
