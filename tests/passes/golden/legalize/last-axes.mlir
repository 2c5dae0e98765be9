// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x6xf32>, tensor<1x5x8xf32>) -> (tensor<2x3x4x1xf32>, tensor<2xf32>, tensor<1x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x6xf32>, %1: tensor<1x5x8xf32>):
    %2 = "tensorop.reduce"(%0) {axes = [3], method = "mean", source.tensor = "reduce1.out"} : (tensor<2x3x4x6xf32>) -> tensor<2x3x4x1xf32> loc("reduce1")
    %3 = "tensorop.reduce"(%0) {axes = [1, 2, 3], keepdims = false, method = "max", source.tensor = "reduce2.out"} : (tensor<2x3x4x6xf32>) -> tensor<2xf32> loc("reduce2")
    %4 = "tensorop.reduce"(%1) {axes = [2], keepdims = false, method = "mean", source.tensor = "reduce3.out"} : (tensor<1x5x8xf32>) -> tensor<1x5xf32> loc("reduce3")
    "func.return"(%2, %3, %4) : (tensor<2x3x4x1xf32>, tensor<2xf32>, tensor<1x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x6xf32>, tensor<1x5x8xf32>) -> (tensor<2x3x4x1xf32>, tensor<2xf32>, tensor<1x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x6xf32>, %1: tensor<1x5x8xf32>):
    %2 = "tensorop.reshape"(%0) {shape = [1, 24, 2, 3]} : (tensor<2x3x4x6xf32>) -> tensor<1x24x2x3xf32> loc("reduce1")
    %3 = "tensorop.avg_pool"(%2) {kernel = [2, 3]} : (tensor<1x24x2x3xf32>) -> tensor<1x24x1x1xf32> loc("reduce1")
    %4 = "tensorop.reshape"(%3) {shape = [2, 3, 4, 1], source.tensor = "reduce1.out"} : (tensor<1x24x1x1xf32>) -> tensor<2x3x4x1xf32> loc("reduce1")
    %5 = "tensorop.reshape"(%0) {shape = [1, 2, 8, 9]} : (tensor<2x3x4x6xf32>) -> tensor<1x2x8x9xf32> loc("reduce2")
    %6 = "tensorop.max_pool"(%5) {kernel = [8, 9]} : (tensor<1x2x8x9xf32>) -> tensor<1x2x1x1xf32> loc("reduce2")
    %7 = "tensorop.reshape"(%6) {shape = [2], source.tensor = "reduce2.out"} : (tensor<1x2x1x1xf32>) -> tensor<2xf32> loc("reduce2")
    %8 = "tensorop.reshape"(%1) {shape = [1, 5, 2, 4]} : (tensor<1x5x8xf32>) -> tensor<1x5x2x4xf32> loc("reduce3")
    %9 = "tensorop.avg_pool"(%8) {kernel = [2, 4]} : (tensor<1x5x2x4xf32>) -> tensor<1x5x1x1xf32> loc("reduce3")
    %10 = "tensorop.reshape"(%9) {shape = [1, 5], source.tensor = "reduce3.out"} : (tensor<1x5x1x1xf32>) -> tensor<1x5xf32> loc("reduce3")
    "func.return"(%4, %7, %10) : (tensor<2x3x4x1xf32>, tensor<2xf32>, tensor<1x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
