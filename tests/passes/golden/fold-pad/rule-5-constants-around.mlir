// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x2x2xf32>, tensor<1x2xf32>) -> (tensor<1x6x2x2xf32>, tensor<1x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x2x2xf32>, %1: tensor<1x2xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<1x1x2x2xf32>
    %3 = "tensorop.weight"() {key = "w2"} : () -> tensor<1x2x2x2xf32>
    %4 = "tensorop.concat"(%2, %0, %3) {axis = 1, source.tensor = "concat3.out"} : (tensor<1x1x2x2xf32>, tensor<1x3x2x2xf32>, tensor<1x2x2x2xf32>) -> tensor<1x6x2x2xf32> loc("concat3")
    %5 = "tensorop.weight"() {key = "w4"} : () -> tensor<1x3xf32>
    %6 = "tensorop.concat"(%1, %5) {axis = 1, source.tensor = "concat5.out"} : (tensor<1x2xf32>, tensor<1x3xf32>) -> tensor<1x5xf32> loc("concat5")
    "func.return"(%4, %6) : (tensor<1x6x2x2xf32>, tensor<1x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fold-pad
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x2x2xf32>, tensor<1x2xf32>) -> (tensor<1x6x2x2xf32>, tensor<1x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x2x2xf32>, %1: tensor<1x2xf32>):
    %2 = "tensorop.pad"(%0) {pads = [0, 0, 1, 2, 0, 0, 0, 0], source.tensor = "concat3.out"} : (tensor<1x3x2x2xf32>) -> tensor<1x6x2x2xf32> loc("concat3")
    %3 = "tensorop.pad"(%1) {pads = [0, 0, 0, 3], source.tensor = "concat5.out", value = 1.0} : (tensor<1x2xf32>) -> tensor<1x5xf32> loc("concat5")
    "func.return"(%2, %3) : (tensor<1x6x2x2xf32>, tensor<1x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
