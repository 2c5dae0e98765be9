// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x3xi8>, tensor<1x2x3xi8>) -> (tensor<1x2x3xi8>, tensor<1x2x3xui8>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x3xi8>, %1: tensor<1x2x3xi8>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<256xi8>
    %3 = "tensorop.lut"(%0, %2) {source.tensor = "lut2.out"} : (tensor<1x2x3xi8>, tensor<256xi8>) -> tensor<1x2x3xi8> loc("lut2")
    %4 = "tensorop.relu"(%3) {source.tensor = "relu3.out"} : (tensor<1x2x3xi8>) -> tensor<1x2x3xi8> loc("relu3")
    %5 = "tensorop.muls_shift"(%4) {multiplier = 77, rshift = 6, source.tensor = "muls_shift4.out"} : (tensor<1x2x3xi8>) -> tensor<1x2x3xi8> loc("muls_shift4")
    %6 = "tensorop.weight"() {key = "w5"} : () -> tensor<256xi8>
    %7 = "tensorop.lut"(%1, %6) {source.tensor = "lut6.out"} : (tensor<1x2x3xi8>, tensor<256xi8>) -> tensor<1x2x3xi8> loc("lut6")
    %8 = "tensorop.weight"() {key = "w7"} : () -> tensor<256xui8>
    %9 = "tensorop.lut"(%7, %8) {source.tensor = "lut8.out"} : (tensor<1x2x3xi8>, tensor<256xui8>) -> tensor<1x2x3xui8> loc("lut8")
    "func.return"(%5, %9) : (tensor<1x2x3xi8>, tensor<1x2x3xui8>) -> ()
  }) {tensorop.input_names = ["a", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after merge-tables
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x3xi8>, tensor<1x2x3xi8>) -> (tensor<1x2x3xi8>, tensor<1x2x3xui8>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x3xi8>, %1: tensor<1x2x3xi8>):
    %2 = "tensorop.weight"() {key = "w1.1.1"} : () -> tensor<256xi8>
    %3 = "tensorop.lut"(%0, %2) {source.tensor = "muls_shift4.out"} : (tensor<1x2x3xi8>, tensor<256xi8>) -> tensor<1x2x3xi8> loc(fused["lut2", "relu3", "muls_shift4"])
    %4 = "tensorop.weight"() {key = "w5.1"} : () -> tensor<256xui8>
    %5 = "tensorop.lut"(%1, %4) {source.tensor = "lut8.out"} : (tensor<1x2x3xi8>, tensor<256xui8>) -> tensor<1x2x3xui8> loc(fused["lut6", "lut8"])
    "func.return"(%3, %5) : (tensor<1x2x3xi8>, tensor<1x2x3xui8>) -> ()
  }) {tensorop.input_names = ["a", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
