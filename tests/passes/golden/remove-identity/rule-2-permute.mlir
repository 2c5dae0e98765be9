// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x3xf32>) -> tensor<1x2x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x3xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x2x3xf32>) -> tensor<1x2x3xf32> loc("relu1")
    %2 = "tensorop.permute"(%1) {order = [0, 1, 2], source.tensor = "permute2.out"} : (tensor<1x2x3xf32>) -> tensor<1x2x3xf32> loc("permute2")
    "func.return"(%2) : (tensor<1x2x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after remove-identity
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x3xf32>) -> tensor<1x2x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x3xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x2x3xf32>) -> tensor<1x2x3xf32> loc(fused["relu1", "permute2"])
    "func.return"(%1) : (tensor<1x2x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
