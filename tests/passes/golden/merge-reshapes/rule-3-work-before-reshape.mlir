// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x3xf32>) -> tensor<1x6xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x3xf32>):
    %1 = "tensorop.abs"(%0) {source.tensor = "abs1.out"} : (tensor<1x2x3xf32>) -> tensor<1x2x3xf32> loc("abs1")
    %2 = "tensorop.reshape"(%1) {shape = [1, 6], source.tensor = "reshape2.out"} : (tensor<1x2x3xf32>) -> tensor<1x6xf32> loc("reshape2")
    %3 = "tensorop.relu"(%2) {source.tensor = "relu3.out"} : (tensor<1x6xf32>) -> tensor<1x6xf32> loc("relu3")
    "func.return"(%3) : (tensor<1x6xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after merge-reshapes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x3xf32>) -> tensor<1x6xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x3xf32>):
    %1 = "tensorop.abs"(%0) {source.tensor = "abs1.out"} : (tensor<1x2x3xf32>) -> tensor<1x2x3xf32> loc("abs1")
    %2 = "tensorop.relu"(%1) {source.tensor = "relu3.out"} : (tensor<1x2x3xf32>) -> tensor<1x2x3xf32> loc("relu3")
    %3 = "tensorop.reshape"(%2) {shape = [1, 6]} : (tensor<1x2x3xf32>) -> tensor<1x6xf32> loc("reshape2")
    "func.return"(%3) : (tensor<1x6xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
