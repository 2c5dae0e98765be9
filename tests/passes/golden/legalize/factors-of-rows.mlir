// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x5x6xf32>, tensor<2x5x1xf32>, tensor<2x1x1xf32>) -> (tensor<2x5x6xf32>, tensor<2x5x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x5x6xf32>, %1: tensor<2x5x1xf32>, %2: tensor<2x1x1xf32>):
    %3 = "tensorop.mul"(%0, %1) {source.tensor = "mul1.out"} : (tensor<2x5x6xf32>, tensor<2x5x1xf32>) -> tensor<2x5x6xf32> loc("mul1")
    %4 = "tensorop.mul"(%2, %0) {source.tensor = "mul2.out"} : (tensor<2x1x1xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32> loc("mul2")
    "func.return"(%3, %4) : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x5x6xf32>, tensor<2x5x1xf32>, tensor<2x1x1xf32>) -> (tensor<2x5x6xf32>, tensor<2x5x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x5x6xf32>, %1: tensor<2x5x1xf32>, %2: tensor<2x1x1xf32>):
    %3 = "tensorop.reshape"(%0) {shape = [1, 10, 1, 6]} : (tensor<2x5x6xf32>) -> tensor<1x10x1x6xf32> loc("mul1")
    %4 = "tensorop.reshape"(%1) {shape = [1, 10, 1, 1]} : (tensor<2x5x1xf32>) -> tensor<1x10x1x1xf32> loc("mul1")
    %5 = "tensorop.mul"(%3, %4) : (tensor<1x10x1x6xf32>, tensor<1x10x1x1xf32>) -> tensor<1x10x1x6xf32> loc("mul1")
    %6 = "tensorop.reshape"(%5) {shape = [2, 5, 6], source.tensor = "mul1.out"} : (tensor<1x10x1x6xf32>) -> tensor<2x5x6xf32> loc("mul1")
    %7 = "tensorop.reshape"(%0) {shape = [1, 2, 1, 30]} : (tensor<2x5x6xf32>) -> tensor<1x2x1x30xf32> loc("mul2")
    %8 = "tensorop.reshape"(%2) {shape = [1, 2, 1, 1]} : (tensor<2x1x1xf32>) -> tensor<1x2x1x1xf32> loc("mul2")
    %9 = "tensorop.mul"(%7, %8) : (tensor<1x2x1x30xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x1x30xf32> loc("mul2")
    %10 = "tensorop.reshape"(%9) {shape = [2, 5, 6], source.tensor = "mul2.out"} : (tensor<1x2x1x30xf32>) -> tensor<2x5x6xf32> loc("mul2")
    "func.return"(%6, %10) : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
