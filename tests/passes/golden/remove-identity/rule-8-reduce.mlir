// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x1x4xf32>) -> (tensor<2x1x4xf32>, tensor<2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x1x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32> loc("relu1")
    %2 = "tensorop.reduce"(%1) {axes = [1], method = "sum", source.tensor = "reduce2.out"} : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32> loc("reduce2")
    %3 = "tensorop.reduce"(%1) {axes = [1], keepdims = false, method = "max", source.tensor = "reduce3.out"} : (tensor<2x1x4xf32>) -> tensor<2x4xf32> loc("reduce3")
    "func.return"(%2, %3) : (tensor<2x1x4xf32>, tensor<2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after remove-identity
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x1x4xf32>) -> (tensor<2x1x4xf32>, tensor<2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x1x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32> loc(fused["relu1", "reduce2"])
    %2 = "tensorop.reshape"(%1) {shape = [2, 4], source.tensor = "reduce3.out"} : (tensor<2x1x4xf32>) -> tensor<2x4xf32> loc("reduce3")
    "func.return"(%1, %2) : (tensor<2x1x4xf32>, tensor<2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
