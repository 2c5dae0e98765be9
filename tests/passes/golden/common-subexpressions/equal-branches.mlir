// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x2x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv2")
    %3 = "tensorop.relu"(%2) {source.tensor = "relu3.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("relu3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<2x2x1x1xf32>
    %5 = "tensorop.conv"(%0, %4) {source.tensor = "conv5.out"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv5")
    %6 = "tensorop.relu"(%5) {source.tensor = "relu6.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("relu6")
    %7 = "tensorop.concat"(%3, %6) {axis = 1, source.tensor = "concat7.out"} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32> loc("concat7")
    "func.return"(%7) : (tensor<1x4x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after common-subexpressions
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x2x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc(fused["conv2", "conv5"])
    %3 = "tensorop.relu"(%2) {source.tensor = "relu3.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc(fused["relu3", "relu6"])
    %4 = "tensorop.concat"(%3, %3) {axis = 1, source.tensor = "concat7.out"} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32> loc("concat7")
    "func.return"(%4) : (tensor<1x4x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
