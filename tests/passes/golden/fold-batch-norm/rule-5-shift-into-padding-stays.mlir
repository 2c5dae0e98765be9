// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x4x4xf32>) -> tensor<1x6x2x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x4x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> loc("relu1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<4xf32>
    %4 = "tensorop.scale"(%1, %2, %3) {source.tensor = "scale4.out"} : (tensor<1x4x4x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc("scale4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<6x4x3x3xf32>
    %6 = "tensorop.conv"(%4, %5) {pads = [0, 0, 1, 0], source.tensor = "conv6.out"} : (tensor<1x4x4x4xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x2x3xf32> loc("conv6")
    "func.return"(%6) : (tensor<1x6x2x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after fold-batch-norm
// unchanged
