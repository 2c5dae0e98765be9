// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1x6xf32>
    %2, %3 = "tensorop.split"(%1) {axis = 1, sizes = [2, 4]} : (tensor<1x6xf32>) -> (tensor<1x2xf32>, tensor<1x4xf32>) loc("split2")
    %4 = "tensorop.add"(%0, %3) {source.tensor = "add3.out"} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32> loc("add3")
    %5 = "tensorop.relu"(%2) {source.tensor = "relu4.out"} : (tensor<1x2xf32>) -> tensor<1x2xf32> loc("relu4")
    "func.return"(%4, %5) : (tensor<1x4xf32>, tensor<1x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fold-constants
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.weight"() {key = "split2.folded.1"} : () -> tensor<1x4xf32> loc("split2")
    %2 = "tensorop.add"(%0, %1) {source.tensor = "add3.out"} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32> loc("add3")
    %3 = "tensorop.weight"() {key = "relu4.folded"} : () -> tensor<1x2xf32> loc("relu4")
    "func.return"(%2, %3) : (tensor<1x4xf32>, tensor<1x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
