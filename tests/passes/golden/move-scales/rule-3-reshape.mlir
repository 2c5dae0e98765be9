// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x6x6xf32>) -> tensor<1x3x36xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x6x6xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x2x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv2")
    %3 = "tensorop.reshape"(%2) {shape = [1, 3, 36], source.tensor = "reshape3.out"} : (tensor<1x3x6x6xf32>) -> tensor<1x3x36xf32> loc("reshape3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<3xf32>
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<3xf32>
    %6 = "tensorop.scale"(%3, %4, %5) {source.tensor = "scale6.out"} : (tensor<1x3x36xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x36xf32> loc("scale6")
    "func.return"(%6) : (tensor<1x3x36xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after move-scales
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x6x6xf32>) -> tensor<1x3x36xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x6x6xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x2x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv2")
    %3 = "tensorop.weight"() {key = "w4"} : () -> tensor<3xf32>
    %4 = "tensorop.weight"() {key = "w5"} : () -> tensor<3xf32>
    %5 = "tensorop.scale"(%2, %3, %4) : (tensor<1x3x6x6xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x6x6xf32> loc("scale6")
    %6 = "tensorop.reshape"(%5) {shape = [1, 3, 36], source.tensor = "scale6.out"} : (tensor<1x3x6x6xf32>) -> tensor<1x3x36xf32> loc(fused["reshape3", "scale6"])
    "func.return"(%6) : (tensor<1x3x36xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
