// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x3x3xf32>, tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<1x6x6x6xf32>, tensor<2x4xf32>, tensor<2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x3x3xf32>, %1: tensor<2x5xf32>, %2: tensor<2x5xf32>):
    %3 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x3x2x2xf32>
    %4 = "tensorop.deconv"(%0, %3) {group = 2, source.tensor = "deconv2.out", strides = [2, 2]} : (tensor<1x4x3x3xf32>, tensor<4x3x2x2xf32>) -> tensor<1x6x6x6xf32> loc("deconv2")
    %5 = "tensorop.weight"() {key = "w3"} : () -> tensor<4x5xf32>
    %6 = "tensorop.weight"() {key = "w4"} : () -> tensor<4xf32>
    %7 = "tensorop.matmul"(%1, %5, %6) {source.tensor = "matmul5.out", transpose_right = true} : (tensor<2x5xf32>, tensor<4x5xf32>, tensor<4xf32>) -> tensor<2x4xf32> loc("matmul5")
    %8 = "tensorop.weight"() {key = "w6"} : () -> tensor<5x4xf32>
    %9 = "tensorop.matmul"(%2, %8) {source.tensor = "matmul7.out"} : (tensor<2x5xf32>, tensor<5x4xf32>) -> tensor<2x4xf32> loc("matmul7")
    %10 = "tensorop.weight"() {key = "w8"} : () -> tensor<6xf32>
    %11 = "tensorop.weight"() {key = "w9"} : () -> tensor<6xf32>
    %12 = "tensorop.scale"(%4, %10, %11) {source.tensor = "scale10.out"} : (tensor<1x6x6x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<1x6x6x6xf32> loc("scale10")
    %13 = "tensorop.weight"() {key = "w11"} : () -> tensor<4xf32>
    %14 = "tensorop.weight"() {key = "w12"} : () -> tensor<4xf32>
    %15 = "tensorop.scale"(%7, %13, %14) {source.tensor = "scale13.out"} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32> loc("scale13")
    %16 = "tensorop.weight"() {key = "w14"} : () -> tensor<4xf32>
    %17 = "tensorop.mul"(%9, %16) {source.tensor = "mul15.out"} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32> loc("mul15")
    "func.return"(%12, %15, %17) : (tensor<1x6x6x6xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fold-batch-norm
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x3x3xf32>, tensor<2x5xf32>, tensor<2x5xf32>) -> (tensor<1x6x6x6xf32>, tensor<2x4xf32>, tensor<2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x3x3xf32>, %1: tensor<2x5xf32>, %2: tensor<2x5xf32>):
    %3 = "tensorop.weight"() {key = "w1.1"} : () -> tensor<4x3x2x2xf32>
    %4 = "tensorop.weight"() {key = "deconv2.bias"} : () -> tensor<6xf32> loc("scale10")
    %5 = "tensorop.deconv"(%0, %3, %4) {group = 2, source.tensor = "scale10.out", strides = [2, 2]} : (tensor<1x4x3x3xf32>, tensor<4x3x2x2xf32>, tensor<6xf32>) -> tensor<1x6x6x6xf32> loc(fused["deconv2", "scale10"])
    %6 = "tensorop.weight"() {key = "w3.1"} : () -> tensor<4x5xf32>
    %7 = "tensorop.weight"() {key = "w4.1"} : () -> tensor<4xf32>
    %8 = "tensorop.matmul"(%1, %6, %7) {source.tensor = "scale13.out", transpose_right = true} : (tensor<2x5xf32>, tensor<4x5xf32>, tensor<4xf32>) -> tensor<2x4xf32> loc(fused["matmul5", "scale13"])
    %9 = "tensorop.weight"() {key = "w6.1"} : () -> tensor<5x4xf32>
    %10 = "tensorop.matmul"(%2, %9) {source.tensor = "mul15.out"} : (tensor<2x5xf32>, tensor<5x4xf32>) -> tensor<2x4xf32> loc(fused["matmul7", "mul15"])
    "func.return"(%5, %8, %10) : (tensor<1x6x6x6xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
