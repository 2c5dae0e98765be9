// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("relu1")
    %2 = "tensorop.avg_pool"(%1) {kernel = [1, 1], source.tensor = "avg_pool2.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("avg_pool2")
    %3 = "tensorop.max_pool"(%2) {kernel = [1, 1], source.tensor = "max_pool3.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("max_pool3")
    "func.return"(%3) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after remove-identity
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc(fused["relu1", "avg_pool2", "max_pool3"])
    "func.return"(%1) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
