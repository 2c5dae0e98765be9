// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x8x3x3xf32>) -> tensor<2x8x3x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x8x3x3xf32>):
    %1 = "tensorop.l2_normalize"(%0) {axes = [1], epsilon = 1.0e-06, source.tensor = "l2_normalize1.out"} : (tensor<2x8x3x3xf32>) -> tensor<2x8x3x3xf32> loc("l2_normalize1")
    "func.return"(%1) : (tensor<2x8x3x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x8x3x3xf32>) -> tensor<2x8x3x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x8x3x3xf32>):
    %1 = "tensorop.weight"() {key = "l2_normalize1.number"} : () -> tensor<1x1x1x1xf32> loc("l2_normalize1")
    %2 = "tensorop.pow"(%0, %1) : (tensor<2x8x3x3xf32>, tensor<1x1x1x1xf32>) -> tensor<2x8x3x3xf32> loc("l2_normalize1")
    %3 = "tensorop.reshape"(%2) {shape = [2, 8, 1, 9]} : (tensor<2x8x3x3xf32>) -> tensor<2x8x1x9xf32> loc("l2_normalize1")
    %4 = "tensorop.weight"() {key = "l2_normalize1.ones"} : () -> tensor<1x8x1x1xf32> loc("l2_normalize1")
    %5 = "tensorop.conv"(%3, %4) {codegen.macs = 0} : (tensor<2x8x1x9xf32>, tensor<1x8x1x1xf32>) -> tensor<2x1x1x9xf32> loc("l2_normalize1")
    %6 = "tensorop.reshape"(%5) {shape = [2, 1, 3, 3]} : (tensor<2x1x1x9xf32>) -> tensor<2x1x3x3xf32> loc("l2_normalize1")
    %7 = "tensorop.weight"() {key = "l2_normalize1.number.1"} : () -> tensor<1x1x1x1xf32> loc("l2_normalize1")
    %8 = "tensorop.add"(%6, %7) : (tensor<2x1x3x3xf32>, tensor<1x1x1x1xf32>) -> tensor<2x1x3x3xf32> loc("l2_normalize1")
    %9 = "tensorop.weight"() {key = "l2_normalize1.number.2"} : () -> tensor<1x1x1x1xf32> loc("l2_normalize1")
    %10 = "tensorop.pow"(%8, %9) : (tensor<2x1x3x3xf32>, tensor<1x1x1x1xf32>) -> tensor<2x1x3x3xf32> loc("l2_normalize1")
    %11 = "tensorop.tile"(%10) {reps = [1, 8, 1, 1]} : (tensor<2x1x3x3xf32>) -> tensor<2x8x3x3xf32> loc("l2_normalize1")
    %12 = "tensorop.mul"(%0, %11) {source.tensor = "l2_normalize1.out"} : (tensor<2x8x3x3xf32>, tensor<2x8x3x3xf32>) -> tensor<2x8x3x3xf32> loc("l2_normalize1")
    "func.return"(%12) : (tensor<2x8x3x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
