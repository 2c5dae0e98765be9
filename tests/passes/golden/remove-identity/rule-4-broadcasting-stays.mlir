// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<3x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x4xf32>
    %2 = "tensorop.add"(%0, %1) {source.tensor = "add2.out"} : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32> loc("add2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<1xf32>
    %4 = "tensorop.sub"(%3, %0) {source.tensor = "sub4.out"} : (tensor<1xf32>, tensor<1x4xf32>) -> tensor<1x4xf32> loc("sub4")
    "func.return"(%2, %4) : (tensor<3x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after remove-identity
// unchanged
