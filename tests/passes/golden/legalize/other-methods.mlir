// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> (tensor<2x3x1xf32>, tensor<2x3x1xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>):
    %1 = "tensorop.reduce"(%0) {axes = [2], method = "min", source.tensor = "reduce1.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32> loc("reduce1")
    %2 = "tensorop.reduce"(%0) {axes = [2], method = "l1", source.tensor = "reduce2.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32> loc("reduce2")
    "func.return"(%1, %2) : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> (tensor<2x3x1xf32>, tensor<2x3x1xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>):
    %1 = "tensorop.neg"(%0) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("reduce1")
    %2 = "tensorop.reshape"(%1) {shape = [1, 6, 2, 2]} : (tensor<2x3x4xf32>) -> tensor<1x6x2x2xf32> loc("reduce1")
    %3 = "tensorop.max_pool"(%2) {kernel = [2, 2]} : (tensor<1x6x2x2xf32>) -> tensor<1x6x1x1xf32> loc("reduce1")
    %4 = "tensorop.reshape"(%3) {shape = [2, 3, 1]} : (tensor<1x6x1x1xf32>) -> tensor<2x3x1xf32> loc("reduce1")
    %5 = "tensorop.neg"(%4) {source.tensor = "reduce1.out"} : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32> loc("reduce1")
    %6 = "tensorop.abs"(%0) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("reduce2")
    %7 = "tensorop.reshape"(%6) {shape = [6, 4, 1, 1]} : (tensor<2x3x4xf32>) -> tensor<6x4x1x1xf32> loc("reduce2")
    %8 = "tensorop.weight"() {key = "reduce2.ones"} : () -> tensor<1x4x1x1xf32> loc("reduce2")
    %9 = "tensorop.conv"(%7, %8) {codegen.macs = 0} : (tensor<6x4x1x1xf32>, tensor<1x4x1x1xf32>) -> tensor<6x1x1x1xf32> loc("reduce2")
    %10 = "tensorop.reshape"(%9) {shape = [2, 3, 1], source.tensor = "reduce2.out"} : (tensor<6x1x1x1xf32>) -> tensor<2x3x1xf32> loc("reduce2")
    "func.return"(%5, %10) : (tensor<2x3x1xf32>, tensor<2x3x1xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
