// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x3x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<2x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x5xf32> loc("conv2")
    %3 = "tensorop.permute"(%2) {order = [0, 2, 3, 1], source.tensor = "permute3.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32> loc("permute3")
    %4 = "tensorop.reshape"(%3) {shape = [2, 60], source.tensor = "reshape4.out"} : (tensor<2x4x5x3xf32>) -> tensor<2x60xf32> loc("reshape4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<60x4xf32>
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<4xf32>
    %7 = "tensorop.matmul"(%4, %5, %6) {source.tensor = "matmul7.out"} : (tensor<2x60xf32>, tensor<60x4xf32>, tensor<4xf32>) -> tensor<2x4xf32> loc("matmul7")
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<2x60xf32>
    %9 = "tensorop.matmul"(%4, %8) {source.tensor = "matmul9.out", transpose_right = true} : (tensor<2x60xf32>, tensor<2x60xf32>) -> tensor<2x2xf32> loc("matmul9")
    "func.return"(%7, %9) : (tensor<2x4xf32>, tensor<2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after move-permutes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x3x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<2x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x5xf32> loc("conv2")
    %3 = "tensorop.weight"() {key = "w6"} : () -> tensor<4xf32>
    %4 = "tensorop.weight"() {key = "w5.1"} : () -> tensor<60x4xf32>
    %5 = "tensorop.reshape"(%2) {shape = [2, 60], source.tensor = "reshape4.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x60xf32> loc(fused["permute3", "reshape4"])
    %6 = "tensorop.matmul"(%5, %4, %3) {source.tensor = "matmul7.out"} : (tensor<2x60xf32>, tensor<60x4xf32>, tensor<4xf32>) -> tensor<2x4xf32> loc("matmul7")
    %7 = "tensorop.weight"() {key = "w8.1"} : () -> tensor<2x60xf32>
    %8 = "tensorop.reshape"(%2) {shape = [2, 60], source.tensor = "reshape4.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x60xf32> loc(fused["permute3", "reshape4"])
    %9 = "tensorop.matmul"(%8, %7) {source.tensor = "matmul9.out", transpose_right = true} : (tensor<2x60xf32>, tensor<2x60xf32>) -> tensor<2x2xf32> loc("matmul9")
    "func.return"(%6, %9) : (tensor<2x4xf32>, tensor<2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
