// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("relu1")
    %2, %3 = "tensorop.split"(%1) {axis = 1, sizes = [4, 0]} : (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x0xf32>) loc("split2")
    %4, %5, %6 = "tensorop.split"(%1) {axis = 1, sizes = [1, 0, 3]} : (tensor<1x4xf32>) -> (tensor<1x1xf32>, tensor<1x0xf32>, tensor<1x3xf32>) loc("split3")
    %7 = "tensorop.concat"(%3, %2) {axis = 1, source.tensor = "concat4.out"} : (tensor<1x0xf32>, tensor<1x4xf32>) -> tensor<1x4xf32> loc("concat4")
    %8 = "tensorop.concat"(%6, %5, %4) {axis = 1, source.tensor = "concat5.out"} : (tensor<1x3xf32>, tensor<1x0xf32>, tensor<1x1xf32>) -> tensor<1x4xf32> loc("concat5")
    "func.return"(%7, %8) : (tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after remove-identity
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc(fused["relu1", "concat4"])
    %2, %3 = "tensorop.split"(%1) {axis = 1, sizes = [1, 3]} : (tensor<1x4xf32>) -> (tensor<1x1xf32>, tensor<1x3xf32>) loc("split3")
    %4 = "tensorop.concat"(%3, %2) {axis = 1, source.tensor = "concat5.out"} : (tensor<1x3xf32>, tensor<1x1xf32>) -> tensor<1x4xf32> loc("concat5")
    "func.return"(%1, %4) : (tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
