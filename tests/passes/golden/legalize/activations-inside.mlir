// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x8x8xf32>) -> (tensor<1x4x3x3xf32>, tensor<1x2x4x3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x8x8xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x3x3x3xf32>
    %2 = "tensorop.conv"(%0, %1) {activation = "relu", source.tensor = "conv2.out", strides = [2, 2]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x3x3xf32> loc("conv2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<4x2x2x2xf32>
    %4 = "tensorop.deconv"(%2, %3) {activation = "relu6", source.tensor = "deconv4.out"} : (tensor<1x4x3x3xf32>, tensor<4x2x2x2xf32>) -> tensor<1x2x4x4xf32> loc("deconv4")
    %5 = "tensorop.add"(%2, %2) {activation = "relu", source.tensor = "add5.out"} : (tensor<1x4x3x3xf32>, tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32> loc("add5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<4x3xf32>
    %7 = "tensorop.matmul"(%4, %6) {activation = "relu", source.tensor = "matmul7.out"} : (tensor<1x2x4x4xf32>, tensor<4x3xf32>) -> tensor<1x2x4x3xf32> loc("matmul7")
    "func.return"(%5, %7) : (tensor<1x4x3x3xf32>, tensor<1x2x4x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x8x8xf32>) -> (tensor<1x4x3x3xf32>, tensor<1x2x4x3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x8x8xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x3x3x3xf32>
    %2 = "tensorop.conv"(%0, %1) {strides = [2, 2]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x3x3xf32> loc("conv2")
    %3 = "tensorop.relu"(%2) {source.tensor = "conv2.out"} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32> loc("conv2")
    %4 = "tensorop.weight"() {key = "w3"} : () -> tensor<4x2x2x2xf32>
    %5 = "tensorop.deconv"(%3, %4) : (tensor<1x4x3x3xf32>, tensor<4x2x2x2xf32>) -> tensor<1x2x4x4xf32> loc("deconv4")
    %6 = "tensorop.clip"(%5) {max = 6.0, min = 0.0, source.tensor = "deconv4.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("deconv4")
    %7 = "tensorop.add"(%3, %3) : (tensor<1x4x3x3xf32>, tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32> loc("add5")
    %8 = "tensorop.relu"(%7) {source.tensor = "add5.out"} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32> loc("add5")
    %9 = "tensorop.weight"() {key = "w6"} : () -> tensor<4x3xf32>
    %10 = "tensorop.matmul"(%6, %9) : (tensor<1x2x4x4xf32>, tensor<4x3xf32>) -> tensor<1x2x4x3xf32> loc("matmul7")
    %11 = "tensorop.relu"(%10) {source.tensor = "matmul7.out"} : (tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32> loc("matmul7")
    "func.return"(%8, %11) : (tensor<1x4x3x3xf32>, tensor<1x2x4x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
