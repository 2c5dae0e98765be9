// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2xf32>, tensor<1x2xf32>) -> (tensor<1x4xf32>, tensor<1x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2xf32>, %1: tensor<1x2xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<1x1xf32>
    %3 = "tensorop.weight"() {key = "w2"} : () -> tensor<1x1xf32>
    %4 = "tensorop.concat"(%2, %0, %3) {axis = 1, source.tensor = "concat3.out"} : (tensor<1x1xf32>, tensor<1x2xf32>, tensor<1x1xf32>) -> tensor<1x4xf32> loc("concat3")
    %5 = "tensorop.weight"() {key = "w4"} : () -> tensor<1x1xf32>
    %6 = "tensorop.concat"(%0, %5, %1) {axis = 1, source.tensor = "concat5.out"} : (tensor<1x2xf32>, tensor<1x1xf32>, tensor<1x2xf32>) -> tensor<1x5xf32> loc("concat5")
    "func.return"(%4, %6) : (tensor<1x4xf32>, tensor<1x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fold-pad
// unchanged
