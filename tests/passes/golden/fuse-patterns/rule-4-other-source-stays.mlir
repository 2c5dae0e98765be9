// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>, tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>, %1: tensor<1x4xf32>):
    %2 = "tensorop.hard_sigmoid"(%0) {alpha = 0.16666666666666666, source.tensor = "hard_sigmoid1.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("hard_sigmoid1")
    %3 = "tensorop.mul"(%1, %2) {source.tensor = "mul2.out"} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32> loc("mul2")
    %4 = "tensorop.hard_sigmoid"(%0) {source.tensor = "hard_sigmoid3.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("hard_sigmoid3")
    %5 = "tensorop.mul"(%0, %4) {source.tensor = "mul4.out"} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32> loc("mul4")
    "func.return"(%3, %5) : (tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data", "y"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-patterns
// unchanged
