// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x2x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<1xf32>
    %4 = "tensorop.add"(%2, %3) {source.tensor = "add4.out"} : (tensor<1x2x4x4xf32>, tensor<1xf32>) -> tensor<1x2x4x4xf32> loc("add4")
    %5 = "tensorop.clip"(%2) {max = 6.0, min = -1.0, source.tensor = "clip5.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("clip5")
    %6 = "tensorop.clip"(%4) {max = 6.0, source.tensor = "clip6.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("clip6")
    "func.return"(%5, %6) : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-activation
// unchanged
