// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>) -> tensor<2x3x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>):
    %1 = "tensorop.dequantize"(%0) {source.tensor = "dequantize1.out"} : (tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>) -> tensor<2x3x4xf32> loc("dequantize1")
    %2 = "tensorop.softmax"(%1) {source.tensor = "softmax2.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("softmax2")
    "func.return"(%2) : (tensor<2x3x4xf32>) -> ()
  }) {tensorop.input_names = ["a"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after merge-tables
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>) -> tensor<2x3x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>):
    %1 = "tensorop.weight"() {key = "softmax2.powers"} : () -> tensor<256xf32> loc("softmax2")
    %2 = "tensorop.lut_softmax"(%0, %1) {axis = 2, source.tensor = "softmax2.out"} : (tensor<2x3x4xui8, {scale = 0.25, zero_point = 100}>, tensor<256xf32>) -> tensor<2x3x4xf32> loc(fused["dequantize1", "softmax2"])
    "func.return"(%2) : (tensor<2x3x4xf32>) -> ()
  }) {tensorop.input_names = ["a"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
