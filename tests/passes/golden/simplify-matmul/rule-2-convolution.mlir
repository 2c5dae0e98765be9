// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x3x5xf32>) -> (tensor<2x3x5x3xf32>, tensor<2x3x5x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x4x3x5xf32>):
    %1 = "tensorop.permute"(%0) {order = [0, 2, 3, 1], source.tensor = "permute1.out"} : (tensor<2x4x3x5xf32>) -> tensor<2x3x5x4xf32> loc("permute1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<4x3xf32>
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<3xf32>
    %4 = "tensorop.matmul"(%1, %2, %3) {source.tensor = "matmul4.out"} : (tensor<2x3x5x4xf32>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<2x3x5x3xf32> loc("matmul4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<2x4xf32>
    %6 = "tensorop.matmul"(%1, %5) {source.tensor = "matmul6.out", transpose_right = true} : (tensor<2x3x5x4xf32>, tensor<2x4xf32>) -> tensor<2x3x5x2xf32> loc("matmul6")
    "func.return"(%4, %6) : (tensor<2x3x5x3xf32>, tensor<2x3x5x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after simplify-matmul
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x3x5xf32>) -> (tensor<2x3x5x3xf32>, tensor<2x3x5x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x4x3x5xf32>):
    %1 = "tensorop.weight"() {key = "w3"} : () -> tensor<3xf32>
    %2 = "tensorop.weight"() {key = "w2.1"} : () -> tensor<3x4x1x1xf32>
    %3 = "tensorop.conv"(%0, %2, %1) {source.tensor = "matmul4.out"} : (tensor<2x4x3x5xf32>, tensor<3x4x1x1xf32>, tensor<3xf32>) -> tensor<2x3x3x5xf32> loc("matmul4")
    %4 = "tensorop.permute"(%3) {order = [0, 2, 3, 1]} : (tensor<2x3x3x5xf32>) -> tensor<2x3x5x3xf32> loc("permute1")
    %5 = "tensorop.weight"() {key = "w5.1"} : () -> tensor<2x4x1x1xf32>
    %6 = "tensorop.conv"(%0, %5) {source.tensor = "matmul6.out"} : (tensor<2x4x3x5xf32>, tensor<2x4x1x1xf32>) -> tensor<2x2x3x5xf32> loc("matmul6")
    %7 = "tensorop.permute"(%6) {order = [0, 2, 3, 1]} : (tensor<2x2x3x5xf32>) -> tensor<2x3x5x2xf32> loc("permute1")
    "func.return"(%4, %7) : (tensor<2x3x5x3xf32>, tensor<2x3x5x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
