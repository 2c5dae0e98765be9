// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.clip"(%0) {max = 5.0, min = -1.0, source.tensor = "clip1.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("clip1")
    %2 = "tensorop.clip"(%1) {max = 3.0, min = 0.0, source.tensor = "clip2.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("clip2")
    %3 = "tensorop.relu"(%0) {source.tensor = "relu3.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("relu3")
    %4 = "tensorop.clip"(%3) {max = 6.0, source.tensor = "clip4.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("clip4")
    %5 = "tensorop.clip"(%0) {max = -1.0, min = -2.0, source.tensor = "clip5.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("clip5")
    %6 = "tensorop.relu"(%5) {source.tensor = "relu6.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("relu6")
    "func.return"(%2, %4, %6) : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fuse-patterns
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.clip"(%0) {max = 3.0, min = 0.0, source.tensor = "clip2.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc(fused["clip1", "clip2"])
    %2 = "tensorop.clip"(%0) {max = 6.0, min = 0.0, source.tensor = "clip4.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc(fused["relu3", "clip4"])
    %3 = "tensorop.clip"(%0) {max = 0.0, min = 0.0, source.tensor = "relu6.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc(fused["clip5", "relu6"])
    "func.return"(%1, %2, %3) : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
