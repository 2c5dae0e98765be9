// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x6xf32>) -> (tensor<2x1x4x6xf32>, tensor<3x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x6xf32>):
    %1 = "tensorop.reduce"(%0) {axes = [1], method = "max", source.tensor = "reduce1.out"} : (tensor<2x3x4x6xf32>) -> tensor<2x1x4x6xf32> loc("reduce1")
    %2 = "tensorop.reduce"(%0) {axes = [0, 2], keepdims = false, method = "mean", source.tensor = "reduce2.out"} : (tensor<2x3x4x6xf32>) -> tensor<3x6xf32> loc("reduce2")
    "func.return"(%1, %2) : (tensor<2x1x4x6xf32>, tensor<3x6xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x6xf32>) -> (tensor<2x1x4x6xf32>, tensor<3x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x6xf32>):
    %1 = "tensorop.permute"(%0) {order = [0, 2, 3, 1]} : (tensor<2x3x4x6xf32>) -> tensor<2x4x6x3xf32> loc("reduce1")
    %2 = "tensorop.reshape"(%1) {shape = [1, 48, 1, 3]} : (tensor<2x4x6x3xf32>) -> tensor<1x48x1x3xf32> loc("reduce1")
    %3 = "tensorop.max_pool"(%2) {kernel = [1, 3]} : (tensor<1x48x1x3xf32>) -> tensor<1x48x1x1xf32> loc("reduce1")
    %4 = "tensorop.reshape"(%3) {shape = [2, 4, 6, 1]} : (tensor<1x48x1x1xf32>) -> tensor<2x4x6x1xf32> loc("reduce1")
    %5 = "tensorop.reshape"(%4) {shape = [2, 1, 4, 6], source.tensor = "reduce1.out"} : (tensor<2x4x6x1xf32>) -> tensor<2x1x4x6xf32> loc("reduce1")
    %6 = "tensorop.permute"(%0) {order = [1, 3, 0, 2]} : (tensor<2x3x4x6xf32>) -> tensor<3x6x2x4xf32> loc("reduce2")
    %7 = "tensorop.reduce"(%6) {axes = [2, 3], method = "mean"} : (tensor<3x6x2x4xf32>) -> tensor<3x6x1x1xf32> loc("reduce2")
    %8 = "tensorop.reshape"(%7) {shape = [3, 6], source.tensor = "reduce2.out"} : (tensor<3x6x1x1xf32>) -> tensor<3x6xf32> loc("reduce2")
    "func.return"(%5, %8) : (tensor<2x1x4x6xf32>, tensor<3x6xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
