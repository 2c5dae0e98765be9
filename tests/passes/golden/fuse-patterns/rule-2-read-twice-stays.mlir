// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.clip"(%0) {max = 5.0, min = -1.0, source.tensor = "clip1.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("clip1")
    %2 = "tensorop.clip"(%1) {max = 3.0, min = 0.0, source.tensor = "clip2.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("clip2")
    "func.return"(%2, %1) : (tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-patterns
// unchanged
