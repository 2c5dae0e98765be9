// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x3x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x3x1x1xf32>
    %2 = "tensorop.permute"(%1) {order = [1, 0, 2, 3], source.tensor = "permute2.out"} : (tensor<2x3x1x1xf32>) -> tensor<3x2x1x1xf32> loc("permute2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<1xf32>
    %4 = "tensorop.mul"(%2, %3) {source.tensor = "mul4.out"} : (tensor<3x2x1x1xf32>, tensor<1xf32>) -> tensor<3x2x1x1xf32> loc("mul4")
    %5 = "tensorop.conv"(%0, %4) {source.tensor = "conv5.out"} : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32> loc("conv5")
    "func.return"(%5) : (tensor<1x3x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after fold-constants
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x3x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "mul4.folded"} : () -> tensor<3x2x1x1xf32> loc("mul4")
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv5.out"} : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32> loc("conv5")
    "func.return"(%2) : (tensor<1x3x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
