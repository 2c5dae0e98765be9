// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x3xi8>) -> tensor<1x2x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x3xi8>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<256xui8, {scale = 0.25, zero_point = 3}>
    %2 = "tensorop.lut"(%0, %1) {source.tensor = "lut2.out"} : (tensor<1x2x3xi8>, tensor<256xui8, {scale = 0.25, zero_point = 3}>) -> tensor<1x2x3xui8, {scale = 0.25, zero_point = 3}> loc("lut2")
    %3 = "tensorop.dequantize"(%2) {source.tensor = "dequantize3.out"} : (tensor<1x2x3xui8, {scale = 0.25, zero_point = 3}>) -> tensor<1x2x3xf32> loc("dequantize3")
    "func.return"(%3) : (tensor<1x2x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after merge-tables
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x3xi8>) -> tensor<1x2x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x3xi8>):
    %1 = "tensorop.weight"() {key = "w1.1"} : () -> tensor<256xf32>
    %2 = "tensorop.lut"(%0, %1) {source.tensor = "dequantize3.out"} : (tensor<1x2x3xi8>, tensor<256xf32>) -> tensor<1x2x3xf32> loc(fused["lut2", "dequantize3"])
    "func.return"(%2) : (tensor<1x2x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
