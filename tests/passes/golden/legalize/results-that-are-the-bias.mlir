// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x5x6xf32>) -> (tensor<1x3x11x19xf32>, tensor<1x2x8x7xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x5x6xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x3x2x3xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<3xf32>
    %3 = "tensorop.deconv"(%0, %1, %2) {output_pads = [1, 2], pads = [0, 0, 1, 0], source.tensor = "deconv3.out", strides = [2, 3]} : (tensor<1x4x5x6xf32>, tensor<4x3x2x3xf32>, tensor<3xf32>) -> tensor<1x3x11x19xf32> loc("deconv3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<4x2x1x1xf32>
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<2xf32>
    %6 = "tensorop.deconv"(%0, %4, %5) {output_pads = [3, 1], source.tensor = "deconv6.out"} : (tensor<1x4x5x6xf32>, tensor<4x2x1x1xf32>, tensor<2xf32>) -> tensor<1x2x8x7xf32> loc("deconv6")
    "func.return"(%3, %6) : (tensor<1x3x11x19xf32>, tensor<1x2x8x7xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x5x6xf32>) -> (tensor<1x3x11x19xf32>, tensor<1x2x8x7xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x5x6xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x3x2x3xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<3xf32>
    %3 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 0, 1, 0, 1]} : (tensor<1x4x5x6xf32>) -> tensor<1x4x6x7xf32> loc("deconv3")
    %4 = "tensorop.deconv"(%3, %1, %2) {codegen.macs = 2160, pads = [0, 1, 1, 1], source.tensor = "deconv3.out", strides = [2, 3]} : (tensor<1x4x6x7xf32>, tensor<4x3x2x3xf32>, tensor<3xf32>) -> tensor<1x3x11x19xf32> loc("deconv3")
    %5 = "tensorop.weight"() {key = "w4"} : () -> tensor<4x2x1x1xf32>
    %6 = "tensorop.weight"() {key = "w5"} : () -> tensor<2xf32>
    %7 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 0, 3, 0, 1]} : (tensor<1x4x5x6xf32>) -> tensor<1x4x8x7xf32> loc("deconv6")
    %8 = "tensorop.deconv"(%7, %5, %6) {codegen.macs = 240, source.tensor = "deconv6.out"} : (tensor<1x4x8x7xf32>, tensor<4x2x1x1xf32>, tensor<2xf32>) -> tensor<1x2x8x7xf32> loc("deconv6")
    "func.return"(%4, %8) : (tensor<1x3x11x19xf32>, tensor<1x2x8x7xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
