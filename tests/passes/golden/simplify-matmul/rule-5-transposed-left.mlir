// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x3xf32>) -> (tensor<3x2xf32>, tensor<2x4x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<4x3xf32>):
    %1 = "tensorop.permute"(%0) {order = [1, 0], source.tensor = "permute1.out"} : (tensor<4x3xf32>) -> tensor<3x4xf32> loc("permute1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<4x2xf32>
    %3 = "tensorop.matmul"(%1, %2) {source.tensor = "matmul3.out"} : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32> loc("matmul3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<2x3x4xf32>
    %5 = "tensorop.matmul"(%0, %4) {source.tensor = "matmul5.out"} : (tensor<4x3xf32>, tensor<2x3x4xf32>) -> tensor<2x4x4xf32> loc("matmul5")
    "func.return"(%3, %5) : (tensor<3x2xf32>, tensor<2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after simplify-matmul
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x3xf32>) -> (tensor<3x2xf32>, tensor<2x4x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<4x3xf32>):
    %1 = "tensorop.weight"() {key = "w2"} : () -> tensor<4x2xf32>
    %2 = "tensorop.matmul"(%0, %1) {source.tensor = "matmul3.out", transpose_left = true} : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<3x2xf32> loc(fused["permute1", "matmul3"])
    %3 = "tensorop.weight"() {key = "w4"} : () -> tensor<2x3x4xf32>
    %4 = "tensorop.matmul"(%0, %3) {source.tensor = "matmul5.out"} : (tensor<4x3xf32>, tensor<2x3x4xf32>) -> tensor<2x4x4xf32> loc("matmul5")
    "func.return"(%2, %4) : (tensor<3x2xf32>, tensor<2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
