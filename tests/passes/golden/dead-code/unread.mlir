// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2xf32>) -> tensor<1x2xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1x2xf32>
    %2 = "tensorop.add"(%0, %1) {source.tensor = "add2.out"} : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32> loc("add2")
    %3 = "tensorop.relu"(%2) {source.tensor = "relu3.out"} : (tensor<1x2xf32>) -> tensor<1x2xf32> loc("relu3")
    %4 = "tensorop.abs"(%0) {source.tensor = "abs4.out"} : (tensor<1x2xf32>) -> tensor<1x2xf32> loc("abs4")
    "func.return"(%4) : (tensor<1x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after dead-code
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2xf32>) -> tensor<1x2xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2xf32>):
    %1 = "tensorop.abs"(%0) {source.tensor = "abs4.out"} : (tensor<1x2xf32>) -> tensor<1x2xf32> loc("abs4")
    "func.return"(%1) : (tensor<1x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
