// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2xf32>):
    %1 = "tensorop.leaky_relu"(%0) {slope = 0.1, source.tensor = "leaky_relu1.out"} : (tensor<1x2xf32>) -> tensor<1x2xf32> loc("leaky_relu1")
    %2 = "tensorop.leaky_relu"(%0) {slope = 0.2, source.tensor = "leaky_relu2.out"} : (tensor<1x2xf32>) -> tensor<1x2xf32> loc("leaky_relu2")
    "func.return"(%1, %2) : (tensor<1x2xf32>, tensor<1x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after common-subexpressions
// unchanged
