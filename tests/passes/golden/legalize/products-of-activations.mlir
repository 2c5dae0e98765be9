// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>, tensor<2x1x6x5xf32>, tensor<1x5x4xf32>, tensor<1x4x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<1x5x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>, %1: tensor<2x1x6x5xf32>, %2: tensor<1x5x4xf32>, %3: tensor<1x4x6xf32>):
    %4 = "tensorop.relu"(%2) {source.tensor = "relu1.out"} : (tensor<1x5x4xf32>) -> tensor<1x5x4xf32> loc("relu1")
    %5 = "tensorop.relu"(%3) {source.tensor = "relu2.out"} : (tensor<1x4x6xf32>) -> tensor<1x4x6xf32> loc("relu2")
    %6 = "tensorop.weight"() {key = "w3"} : () -> tensor<6xf32>
    %7 = "tensorop.matmul"(%4, %5, %6) {source.tensor = "matmul4.out"} : (tensor<1x5x4xf32>, tensor<1x4x6xf32>, tensor<6xf32>) -> tensor<1x5x6xf32> loc("matmul4")
    %8 = "tensorop.matmul"(%0, %1) {source.tensor = "matmul5.out", transpose_right = true} : (tensor<2x3x4x5xf32>, tensor<2x1x6x5xf32>) -> tensor<2x3x4x6xf32> loc("matmul5")
    "func.return"(%8, %7) : (tensor<2x3x4x6xf32>, tensor<1x5x6xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c", "d"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>, tensor<2x1x6x5xf32>, tensor<1x5x4xf32>, tensor<1x4x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<1x5x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>, %1: tensor<2x1x6x5xf32>, %2: tensor<1x5x4xf32>, %3: tensor<1x4x6xf32>):
    %4 = "tensorop.relu"(%2) {source.tensor = "relu1.out"} : (tensor<1x5x4xf32>) -> tensor<1x5x4xf32> loc("relu1")
    %5 = "tensorop.relu"(%3) {source.tensor = "relu2.out"} : (tensor<1x4x6xf32>) -> tensor<1x4x6xf32> loc("relu2")
    %6 = "tensorop.weight"() {key = "w3"} : () -> tensor<6xf32>
    %7 = "tensorop.matmul"(%4, %5) : (tensor<1x5x4xf32>, tensor<1x4x6xf32>) -> tensor<1x5x6xf32> loc("matmul4")
    %8 = "tensorop.add"(%7, %6) {source.tensor = "matmul4.out"} : (tensor<1x5x6xf32>, tensor<6xf32>) -> tensor<1x5x6xf32> loc("matmul4")
    %9 = "tensorop.permute"(%1) {order = [0, 1, 3, 2]} : (tensor<2x1x6x5xf32>) -> tensor<2x1x5x6xf32> loc("matmul5")
    %10 = "tensorop.tile"(%9) {reps = [1, 3, 1, 1]} : (tensor<2x1x5x6xf32>) -> tensor<2x3x5x6xf32> loc("matmul5")
    %11 = "tensorop.matmul"(%0, %10) {source.tensor = "matmul5.out"} : (tensor<2x3x4x5xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x4x6xf32> loc("matmul5")
    "func.return"(%11, %8) : (tensor<2x3x4x6xf32>, tensor<1x5x6xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c", "d"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
