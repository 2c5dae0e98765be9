// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> (tensor<2x1x4xf32>, tensor<2x3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>):
    %1 = "tensorop.reduce"(%0) {axes = [1], method = "prod", source.tensor = "reduce1.out"} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32> loc("reduce1")
    %2 = "tensorop.reduce"(%0) {axes = [2], keepdims = false, method = "prod", source.tensor = "reduce2.out"} : (tensor<2x3x4xf32>) -> tensor<2x3xf32> loc("reduce2")
    "func.return"(%1, %2) : (tensor<2x1x4xf32>, tensor<2x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> (tensor<2x1x4xf32>, tensor<2x3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>):
    %1 = "tensorop.permute"(%0) {order = [0, 2, 1]} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32> loc("reduce1")
    %2 = "tensorop.reshape"(%1) {shape = [8, 3]} : (tensor<2x4x3xf32>) -> tensor<8x3xf32> loc("reduce1")
    %3 = "tensorop.slice"(%2) {ends = [8, 1], starts = [0, 0], steps = [1, 1]} : (tensor<8x3xf32>) -> tensor<8x1xf32> loc("reduce1")
    %4 = "tensorop.slice"(%2) {ends = [8, 2], starts = [0, 1], steps = [1, 1]} : (tensor<8x3xf32>) -> tensor<8x1xf32> loc("reduce1")
    %5 = "tensorop.slice"(%2) {ends = [8, 3], starts = [0, 2], steps = [1, 1]} : (tensor<8x3xf32>) -> tensor<8x1xf32> loc("reduce1")
    %6 = "tensorop.mul"(%3, %4) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32> loc("reduce1")
    %7 = "tensorop.mul"(%6, %5) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32> loc("reduce1")
    %8 = "tensorop.reshape"(%7) {shape = [2, 4, 1]} : (tensor<8x1xf32>) -> tensor<2x4x1xf32> loc("reduce1")
    %9 = "tensorop.reshape"(%8) {shape = [2, 1, 4], source.tensor = "reduce1.out"} : (tensor<2x4x1xf32>) -> tensor<2x1x4xf32> loc("reduce1")
    %10 = "tensorop.reshape"(%0) {shape = [6, 4]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32> loc("reduce2")
    %11 = "tensorop.slice"(%10) {ends = [6, 2], starts = [0, 0], steps = [1, 1]} : (tensor<6x4xf32>) -> tensor<6x2xf32> loc("reduce2")
    %12 = "tensorop.slice"(%10) {ends = [6, 4], starts = [0, 2], steps = [1, 1]} : (tensor<6x4xf32>) -> tensor<6x2xf32> loc("reduce2")
    %13 = "tensorop.mul"(%11, %12) : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x2xf32> loc("reduce2")
    %14 = "tensorop.slice"(%13) {ends = [6, 1], starts = [0, 0], steps = [1, 1]} : (tensor<6x2xf32>) -> tensor<6x1xf32> loc("reduce2")
    %15 = "tensorop.slice"(%13) {ends = [6, 2], starts = [0, 1], steps = [1, 1]} : (tensor<6x2xf32>) -> tensor<6x1xf32> loc("reduce2")
    %16 = "tensorop.mul"(%14, %15) : (tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x1xf32> loc("reduce2")
    %17 = "tensorop.reshape"(%16) {shape = [2, 3], source.tensor = "reduce2.out"} : (tensor<6x1xf32>) -> tensor<2x3xf32> loc("reduce2")
    "func.return"(%9, %17) : (tensor<2x1x4xf32>, tensor<2x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
