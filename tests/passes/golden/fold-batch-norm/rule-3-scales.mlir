// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32> loc("relu1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<3xf32>
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<3xf32>
    %4 = "tensorop.scale"(%1, %2, %3) {source.tensor = "scale4.out"} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32> loc("scale4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<3xf32>
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<3xf32>
    %7 = "tensorop.scale"(%4, %5, %6) {source.tensor = "scale7.out"} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32> loc("scale7")
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<4xf32>
    %9 = "tensorop.weight"() {key = "w9"} : () -> tensor<4xf32>
    %10 = "tensorop.scale"(%7, %8, %9) {axis = 3, source.tensor = "scale10.out"} : (tensor<2x3x4x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x3x4x4xf32> loc("scale10")
    %11 = "tensorop.weight"() {key = "w11"} : () -> tensor<3xf32>
    %12 = "tensorop.scale"(%10, %11) {source.tensor = "scale12.out"} : (tensor<2x3x4x4xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32> loc("scale12")
    "func.return"(%12) : (tensor<2x3x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after fold-batch-norm
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32> loc("relu1")
    %2 = "tensorop.weight"() {key = "scale10+scale12.scale"} : () -> tensor<3xf32> loc(fused["scale10", "scale12"])
    %3 = "tensorop.weight"() {key = "scale10+scale12.shift"} : () -> tensor<3xf32> loc(fused["scale10", "scale12"])
    %4 = "tensorop.scale"(%1, %2, %3) {source.tensor = "scale12.out"} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32> loc(fused["scale4", "scale7", "scale10", "scale12"])
    "func.return"(%4) : (tensor<2x3x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
