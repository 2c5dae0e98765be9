// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x6x6xf32>, tensor<1x2x6x6xf32>) -> tensor<1x6x6x6xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x6x6xf32>, %1: tensor<1x2x6x6xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x2x1x1xf32>
    %3 = "tensorop.conv"(%0, %2) {source.tensor = "conv2.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv2")
    %4 = "tensorop.weight"() {key = "w3"} : () -> tensor<3x2x1x1xf32>
    %5 = "tensorop.conv"(%1, %4) {source.tensor = "conv4.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv4")
    %6 = "tensorop.concat"(%3, %5) {axis = 1, source.tensor = "concat5.out"} : (tensor<1x3x6x6xf32>, tensor<1x3x6x6xf32>) -> tensor<1x6x6x6xf32> loc("concat5")
    %7 = "tensorop.weight"() {key = "w6"} : () -> tensor<6xf32>
    %8 = "tensorop.weight"() {key = "w7"} : () -> tensor<6xf32>
    %9 = "tensorop.scale"(%6, %7, %8) {source.tensor = "scale8.out"} : (tensor<1x6x6x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<1x6x6x6xf32> loc("scale8")
    "func.return"(%9) : (tensor<1x6x6x6xf32>) -> ()
  }) {tensorop.input_names = ["a", "b"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after move-scales
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x6x6xf32>, tensor<1x2x6x6xf32>) -> tensor<1x6x6x6xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x6x6xf32>, %1: tensor<1x2x6x6xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x2x1x1xf32>
    %3 = "tensorop.conv"(%0, %2) {source.tensor = "conv2.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv2")
    %4 = "tensorop.weight"() {key = "w3"} : () -> tensor<3x2x1x1xf32>
    %5 = "tensorop.conv"(%1, %4) {source.tensor = "conv4.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv4")
    %6 = "tensorop.weight"() {key = "w6.1"} : () -> tensor<3xf32>
    %7 = "tensorop.weight"() {key = "w7.1"} : () -> tensor<3xf32>
    %8 = "tensorop.scale"(%3, %6, %7) : (tensor<1x3x6x6xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x6x6xf32> loc("scale8")
    %9 = "tensorop.weight"() {key = "w6.2"} : () -> tensor<3xf32>
    %10 = "tensorop.weight"() {key = "w7.2"} : () -> tensor<3xf32>
    %11 = "tensorop.scale"(%5, %9, %10) : (tensor<1x3x6x6xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x6x6xf32> loc("scale8")
    %12 = "tensorop.concat"(%8, %11) {axis = 1, source.tensor = "scale8.out"} : (tensor<1x3x6x6xf32>, tensor<1x3x6x6xf32>) -> tensor<1x6x6x6xf32> loc(fused["concat5", "scale8"])
    "func.return"(%12) : (tensor<1x6x6x6xf32>) -> ()
  }) {tensorop.input_names = ["a", "b"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
