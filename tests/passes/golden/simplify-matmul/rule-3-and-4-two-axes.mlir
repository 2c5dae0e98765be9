// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1x4x5xf32>
    %2 = "tensorop.matmul"(%0, %1) {source.tensor = "matmul2.out"} : (tensor<2x3x4xf32>, tensor<1x4x5xf32>) -> tensor<2x3x5xf32> loc("matmul2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<5x4xf32>
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<5xf32>
    %5 = "tensorop.matmul"(%0, %3, %4) {source.tensor = "matmul5.out", transpose_right = true} : (tensor<2x3x4xf32>, tensor<5x4xf32>, tensor<5xf32>) -> tensor<2x3x5xf32> loc("matmul5")
    "func.return"(%2, %5) : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after simplify-matmul
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1x4x5xf32>
    %2 = "tensorop.reshape"(%1) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %3 = "tensorop.matmul"(%0, %2) {source.tensor = "matmul2.out"} : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32> loc("matmul2")
    %4 = "tensorop.weight"() {key = "w3"} : () -> tensor<5x4xf32>
    %5 = "tensorop.weight"() {key = "w4"} : () -> tensor<5xf32>
    %6 = "tensorop.reshape"(%0) {shape = [6, 4]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32> loc("matmul5")
    %7 = "tensorop.matmul"(%6, %4, %5) {source.tensor = "matmul5.out", transpose_right = true} : (tensor<6x4xf32>, tensor<5x4xf32>, tensor<5xf32>) -> tensor<6x5xf32> loc("matmul5")
    %8 = "tensorop.reshape"(%7) {shape = [2, 3, 5]} : (tensor<6x5xf32>) -> tensor<2x3x5xf32> loc("matmul5")
    "func.return"(%3, %8) : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
