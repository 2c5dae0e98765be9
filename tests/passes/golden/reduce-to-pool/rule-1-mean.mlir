// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x3xf32>) -> (tensor<1x4x1x1xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x3xf32>):
    %1 = "tensorop.reduce"(%0) {axes = [2, 3], method = "mean", source.tensor = "reduce1.out"} : (tensor<1x4x2x3xf32>) -> tensor<1x4x1x1xf32> loc("reduce1")
    %2 = "tensorop.reduce"(%0) {axes = [3, 2], keepdims = false, method = "mean", source.tensor = "reduce2.out"} : (tensor<1x4x2x3xf32>) -> tensor<1x4xf32> loc("reduce2")
    "func.return"(%1, %2) : (tensor<1x4x1x1xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after reduce-to-pool
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x3xf32>) -> (tensor<1x4x1x1xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x3xf32>):
    %1 = "tensorop.avg_pool"(%0) {kernel = [2, 3], source.tensor = "reduce1.out"} : (tensor<1x4x2x3xf32>) -> tensor<1x4x1x1xf32> loc("reduce1")
    %2 = "tensorop.avg_pool"(%0) {kernel = [2, 3], source.tensor = "reduce2.out"} : (tensor<1x4x2x3xf32>) -> tensor<1x4x1x1xf32> loc("reduce2")
    %3 = "tensorop.reshape"(%2) {shape = [1, 4]} : (tensor<1x4x1x1xf32>) -> tensor<1x4xf32> loc("reduce2")
    "func.return"(%1, %3) : (tensor<1x4x1x1xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
