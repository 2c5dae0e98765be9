// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x5x5xf32>) -> tensor<1x6x5x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x5x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<6x2x3x3xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<6xf32>
    %3 = "tensorop.conv"(%0, %1, %2) {group = 2, pads = [1, 1, 1, 1], source.tensor = "conv3.out"} : (tensor<1x4x5x5xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<1x6x5x5xf32> loc("conv3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<6xf32>
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<6xf32>
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<6xf32>
    %7 = "tensorop.weight"() {key = "w7"} : () -> tensor<6xf32>
    %8 = "tensorop.batch_norm"(%3, %4, %5, %6, %7) {epsilon = 0.001, source.tensor = "batch_norm8.out"} : (tensor<1x6x5x5xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<1x6x5x5xf32> loc("batch_norm8")
    %9 = "tensorop.relu"(%8) {source.tensor = "relu9.out"} : (tensor<1x6x5x5xf32>) -> tensor<1x6x5x5xf32> loc("relu9")
    "func.return"(%9) : (tensor<1x6x5x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after fold-batch-norm
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x5x5xf32>) -> tensor<1x6x5x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x5x5xf32>):
    %1 = "tensorop.weight"() {key = "w1.1"} : () -> tensor<6x2x3x3xf32>
    %2 = "tensorop.weight"() {key = "w2.1"} : () -> tensor<6xf32>
    %3 = "tensorop.conv"(%0, %1, %2) {group = 2, pads = [1, 1, 1, 1], source.tensor = "batch_norm8.out"} : (tensor<1x4x5x5xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<1x6x5x5xf32> loc(fused["conv3", "batch_norm8"])
    %4 = "tensorop.relu"(%3) {source.tensor = "relu9.out"} : (tensor<1x6x5x5xf32>) -> tensor<1x6x5x5xf32> loc("relu9")
    "func.return"(%4) : (tensor<1x6x5x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
