// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>) -> (tensor<2x4x5x2xf32>, tensor<2x4x5x1xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x3x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<2x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x5xf32> loc("conv2")
    %3 = "tensorop.permute"(%2) {order = [0, 2, 3, 1], source.tensor = "permute3.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32> loc("permute3")
    %4, %5 = "tensorop.split"(%3) {axis = 3, sizes = [2, 1]} : (tensor<2x4x5x3xf32>) -> (tensor<2x4x5x2xf32>, tensor<2x4x5x1xf32>) loc("split4")
    "func.return"(%4, %5) : (tensor<2x4x5x2xf32>, tensor<2x4x5x1xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after move-permutes
// unchanged
