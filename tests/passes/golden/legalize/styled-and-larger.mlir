// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x12x2x3xf32>, tensor<1x3x6x5xf32>) -> tensor<1x4x12x9xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x12x2x3xf32>, %1: tensor<1x3x6x5xf32>):
    %2 = "tensorop.reshape"(%0) {shape = [3, 4, 2, 3], source.tensor = "reshape1.out"} : (tensor<1x12x2x3xf32>) -> tensor<3x4x2x3xf32> loc("reshape1")
    %3 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %4 = "tensorop.deconv"(%1, %2, %3) {pads = [0, 0, 1, 1], source.tensor = "deconv3.out", strides = [2, 2]} : (tensor<1x3x6x5xf32>, tensor<3x4x2x3xf32>, tensor<4xf32>) -> tensor<1x4x12x9xf32> loc("deconv3")
    "func.return"(%4) : (tensor<1x4x12x9xf32>) -> ()
  }) {tensorop.input_names = ["b", "data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x12x2x3xf32>, tensor<1x3x6x5xf32>) -> tensor<1x4x12x9xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x12x2x3xf32>, %1: tensor<1x3x6x5xf32>):
    %2 = "tensorop.reshape"(%0) {shape = [3, 4, 2, 3], source.tensor = "reshape1.out"} : (tensor<1x12x2x3xf32>) -> tensor<3x4x2x3xf32> loc("reshape1")
    %3 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %4 = "tensorop.reshape"(%1) {shape = [3, 30]} : (tensor<1x3x6x5xf32>) -> tensor<3x30xf32> loc("deconv3")
    %5 = "tensorop.reshape"(%2) {shape = [3, 24]} : (tensor<3x4x2x3xf32>) -> tensor<3x24xf32> loc("deconv3")
    %6 = "tensorop.permute"(%5) {order = [1, 0]} : (tensor<3x24xf32>) -> tensor<24x3xf32> loc("deconv3")
    %7 = "tensorop.matmul"(%6, %4) {codegen.macs = 720} : (tensor<24x3xf32>, tensor<3x30xf32>) -> tensor<24x30xf32> loc("deconv3")
    %8 = "tensorop.reshape"(%7) {shape = [1, 24, 6, 5]} : (tensor<24x30xf32>) -> tensor<1x24x6x5xf32> loc("deconv3")
    %9 = "tensorop.weight"() {key = "deconv3.places"} : () -> tensor<24x1x2x3xf32> loc("deconv3")
    %10 = "tensorop.deconv"(%8, %9, %3) {codegen.macs = 1440, group = 4, pads = [0, 0, 1, 1], source.tensor = "deconv3.out", strides = [2, 2]} : (tensor<1x24x6x5xf32>, tensor<24x1x2x3xf32>, tensor<4xf32>) -> tensor<1x4x12x9xf32> loc("deconv3")
    "func.return"(%10) : (tensor<1x4x12x9xf32>) -> ()
  }) {tensorop.input_names = ["b", "data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
