// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> tensor<1x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("relu1")
    %2 = "tensorop.clip"(%1) {source.tensor = "clip2.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("clip2")
    %3 = "tensorop.leaky_relu"(%2) {slope = 1.0, source.tensor = "leaky_relu3.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("leaky_relu3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<4xf32>
    %5 = "tensorop.prelu"(%3, %4) {source.tensor = "prelu5.out"} : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32> loc("prelu5")
    "func.return"(%5) : (tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after remove-identity
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> tensor<1x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc(fused["relu1", "clip2", "leaky_relu3", "prelu5"])
    "func.return"(%1) : (tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
