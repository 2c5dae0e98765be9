// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x3xf32>, tensor<1x6x4xf32>) -> (tensor<2x5x3xf32>, tensor<1x5x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x4x3xf32>, %1: tensor<1x6x4xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<5x4xf32>
    %3 = "tensorop.matmul"(%2, %0) {source.tensor = "matmul2.out"} : (tensor<5x4xf32>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32> loc("matmul2")
    %4 = "tensorop.weight"() {key = "w3"} : () -> tensor<4x5xf32>
    %5 = "tensorop.matmul"(%4, %1) {source.tensor = "matmul4.out", transpose_left = true, transpose_right = true} : (tensor<4x5xf32>, tensor<1x6x4xf32>) -> tensor<1x5x6xf32> loc("matmul4")
    "func.return"(%3, %5) : (tensor<2x5x3xf32>, tensor<1x5x6xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x3xf32>, tensor<1x6x4xf32>) -> (tensor<2x5x3xf32>, tensor<1x5x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x4x3xf32>, %1: tensor<1x6x4xf32>):
    %2 = "tensorop.weight"() {key = "matmul2.weight"} : () -> tensor<5x4x1x1xf32> loc("matmul2")
    %3 = "tensorop.reshape"(%0) {shape = [2, 4, 1, 3]} : (tensor<2x4x3xf32>) -> tensor<2x4x1x3xf32> loc("matmul2")
    %4 = "tensorop.conv"(%3, %2) : (tensor<2x4x1x3xf32>, tensor<5x4x1x1xf32>) -> tensor<2x5x1x3xf32> loc("matmul2")
    %5 = "tensorop.reshape"(%4) {shape = [2, 5, 3], source.tensor = "matmul2.out"} : (tensor<2x5x1x3xf32>) -> tensor<2x5x3xf32> loc("matmul2")
    %6 = "tensorop.weight"() {key = "matmul4.weight"} : () -> tensor<5x4x1x1xf32> loc("matmul4")
    %7 = "tensorop.permute"(%1) {order = [0, 2, 1]} : (tensor<1x6x4xf32>) -> tensor<1x4x6xf32> loc("matmul4")
    %8 = "tensorop.reshape"(%7) {shape = [1, 4, 1, 6]} : (tensor<1x4x6xf32>) -> tensor<1x4x1x6xf32> loc("matmul4")
    %9 = "tensorop.conv"(%8, %6) : (tensor<1x4x1x6xf32>, tensor<5x4x1x1xf32>) -> tensor<1x5x1x6xf32> loc("matmul4")
    %10 = "tensorop.reshape"(%9) {shape = [1, 5, 6], source.tensor = "matmul4.out"} : (tensor<1x5x1x6xf32>) -> tensor<1x5x6xf32> loc("matmul4")
    "func.return"(%5, %10) : (tensor<2x5x3xf32>, tensor<1x5x6xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
