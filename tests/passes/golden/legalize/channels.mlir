// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4x6xf32>) -> (tensor<1x1x4x6xf32>, tensor<1x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4x6xf32>):
    %1 = "tensorop.reduce"(%0) {axes = [1], method = "mean", source.tensor = "reduce1.out"} : (tensor<1x3x4x6xf32>) -> tensor<1x1x4x6xf32> loc("reduce1")
    %2 = "tensorop.reduce"(%0) {axes = [1, 2], keepdims = false, method = "sum", source.tensor = "reduce2.out"} : (tensor<1x3x4x6xf32>) -> tensor<1x6xf32> loc("reduce2")
    "func.return"(%1, %2) : (tensor<1x1x4x6xf32>, tensor<1x6xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4x6xf32>) -> (tensor<1x1x4x6xf32>, tensor<1x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4x6xf32>):
    %1 = "tensorop.reshape"(%0) {shape = [1, 3, 1, 24]} : (tensor<1x3x4x6xf32>) -> tensor<1x3x1x24xf32> loc("reduce1")
    %2 = "tensorop.weight"() {key = "reduce1.ones"} : () -> tensor<1x3x1x1xf32> loc("reduce1")
    %3 = "tensorop.conv"(%1, %2) {codegen.macs = 0} : (tensor<1x3x1x24xf32>, tensor<1x3x1x1xf32>) -> tensor<1x1x1x24xf32> loc("reduce1")
    %4 = "tensorop.reshape"(%3) {shape = [1, 1, 4, 6], source.tensor = "reduce1.out"} : (tensor<1x1x1x24xf32>) -> tensor<1x1x4x6xf32> loc("reduce1")
    %5 = "tensorop.reshape"(%0) {shape = [1, 12, 1, 6]} : (tensor<1x3x4x6xf32>) -> tensor<1x12x1x6xf32> loc("reduce2")
    %6 = "tensorop.weight"() {key = "reduce2.ones"} : () -> tensor<1x12x1x1xf32> loc("reduce2")
    %7 = "tensorop.conv"(%5, %6) {codegen.macs = 0} : (tensor<1x12x1x6xf32>, tensor<1x12x1x1xf32>) -> tensor<1x1x1x6xf32> loc("reduce2")
    %8 = "tensorop.reshape"(%7) {shape = [1, 6], source.tensor = "reduce2.out"} : (tensor<1x1x1x6xf32>) -> tensor<1x6xf32> loc("reduce2")
    "func.return"(%4, %8) : (tensor<1x1x4x6xf32>, tensor<1x6xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
