// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x3xf32>) -> tensor<3x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<4x3xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x5xf32>
    %2 = "tensorop.matmul"(%0, %1) {source.tensor = "matmul2.out", transpose_left = true} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32> loc("matmul2")
    "func.return"(%2) : (tensor<3x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x3xf32>) -> tensor<3x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<4x3xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x5xf32>
    %2 = "tensorop.permute"(%0) {order = [1, 0]} : (tensor<4x3xf32>) -> tensor<3x4xf32> loc("matmul2")
    %3 = "tensorop.matmul"(%2, %1) {source.tensor = "matmul2.out"} : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32> loc("matmul2")
    "func.return"(%3) : (tensor<3x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
