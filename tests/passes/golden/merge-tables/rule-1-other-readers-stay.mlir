// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x3xi8>, tensor<1x2x3xi8>) -> (tensor<1x2x3xi8>, tensor<1x2x3xi8>, tensor<1x2x3xi8>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x3xi8>, %1: tensor<1x2x3xi8>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<256xi8>
    %3 = "tensorop.lut"(%0, %2) {source.tensor = "lut2.out"} : (tensor<1x2x3xi8>, tensor<256xi8>) -> tensor<1x2x3xi8> loc("lut2")
    %4 = "tensorop.relu"(%3) {source.tensor = "relu3.out"} : (tensor<1x2x3xi8>) -> tensor<1x2x3xi8> loc("relu3")
    %5 = "tensorop.muls_shift"(%3) {multiplier = 3, rshift = 1, source.tensor = "muls_shift4.out"} : (tensor<1x2x3xi8>) -> tensor<1x2x3xi8> loc("muls_shift4")
    %6 = "tensorop.weight"() {key = "w5"} : () -> tensor<256xi8>
    %7 = "tensorop.lut"(%1, %6) {source.tensor = "lut6.out"} : (tensor<1x2x3xi8>, tensor<256xi8>) -> tensor<1x2x3xi8> loc("lut6")
    "func.return"(%4, %5, %7) : (tensor<1x2x3xi8>, tensor<1x2x3xi8>, tensor<1x2x3xi8>) -> ()
  }) {tensorop.input_names = ["a", "b"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after merge-tables
// unchanged
