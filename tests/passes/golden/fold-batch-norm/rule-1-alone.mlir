// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x2xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("relu1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<4xf32>
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<4xf32>
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<4xf32>
    %6 = "tensorop.batch_norm"(%1, %2, %3, %4, %5) {epsilon = 0.001, source.tensor = "batch_norm6.out"} : (tensor<1x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x2x2xf32> loc("batch_norm6")
    "func.return"(%6) : (tensor<1x4x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after fold-batch-norm
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x2xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("relu1")
    %2 = "tensorop.weight"() {key = "batch_norm6.scale"} : () -> tensor<4xf32> loc("batch_norm6")
    %3 = "tensorop.weight"() {key = "batch_norm6.shift"} : () -> tensor<4xf32> loc("batch_norm6")
    %4 = "tensorop.scale"(%1, %2, %3) {source.tensor = "batch_norm6.out"} : (tensor<1x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x2x2xf32> loc("batch_norm6")
    "func.return"(%4) : (tensor<1x4x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
