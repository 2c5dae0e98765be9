// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x2x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv2")
    %3 = "tensorop.relu"(%2) {source.tensor = "relu3.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("relu3")
    %4 = "tensorop.add"(%3, %2) {source.tensor = "add4.out"} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("add4")
    %5 = "tensorop.relu"(%4) {source.tensor = "relu5.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("relu5")
    "func.return"(%5, %4) : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-activation
// unchanged
