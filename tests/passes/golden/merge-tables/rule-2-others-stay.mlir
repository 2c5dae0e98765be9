// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>, tensor<2x3x4xui8, {scale = 1.0, zero_point = 100}>, tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>, %1: tensor<2x3x4xui8, {scale = 1.0, zero_point = 100}>, %2: tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>):
    %3 = "tensorop.dequantize"(%0) {source.tensor = "dequantize1.out"} : (tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>) -> tensor<2x3x4xf32> loc("dequantize1")
    %4 = "tensorop.softmax"(%3) {axis = 1, source.tensor = "softmax2.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("softmax2")
    %5 = "tensorop.dequantize"(%1) {source.tensor = "dequantize3.out"} : (tensor<2x3x4xui8, {scale = 1.0, zero_point = 100}>) -> tensor<2x3x4xf32> loc("dequantize3")
    %6 = "tensorop.softmax"(%5) {axis = 2, source.tensor = "softmax4.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("softmax4")
    %7 = "tensorop.dequantize"(%2) {source.tensor = "dequantize5.out"} : (tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>) -> tensor<2x3x4xf32> loc("dequantize5")
    %8 = "tensorop.softmax"(%7) {axis = 2, source.tensor = "softmax6.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("softmax6")
    "func.return"(%4, %6, %8, %7) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> ()
  }) {tensorop.input_names = ["a", "b", "c"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after merge-tables
// unchanged
