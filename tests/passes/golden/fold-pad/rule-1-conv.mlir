// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x5x5xf32>, tensor<1x1x5x5xf32>) -> (tensor<1x3x3x3xf32>, tensor<1x3x5x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x5x5xf32>, %1: tensor<1x1x5x5xf32>):
    %2 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 1, 0, 2, 1], source.tensor = "pad1.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x6x8xf32> loc("pad1")
    %3 = "tensorop.pad"(%1) {pads = [0, 0, 1, 0, 1, 1, 1, 1], source.tensor = "pad2.out"} : (tensor<1x1x5x5xf32>) -> tensor<1x2x7x7xf32> loc("pad2")
    %4 = "tensorop.weight"() {key = "w3"} : () -> tensor<3x2x3x3xf32>
    %5 = "tensorop.conv"(%2, %4) {pads = [1, 1, 0, 0], source.tensor = "conv4.out", strides = [2, 2]} : (tensor<1x2x6x8xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32> loc("conv4")
    %6 = "tensorop.weight"() {key = "w5"} : () -> tensor<3x2x3x3xf32>
    %7 = "tensorop.conv"(%3, %6) {source.tensor = "conv6.out"} : (tensor<1x2x7x7xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x5x5xf32> loc("conv6")
    "func.return"(%5, %7) : (tensor<1x3x3x3xf32>, tensor<1x3x5x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fold-pad
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x5x5xf32>, tensor<1x1x5x5xf32>) -> (tensor<1x3x3x3xf32>, tensor<1x3x5x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x5x5xf32>, %1: tensor<1x1x5x5xf32>):
    %2 = "tensorop.pad"(%1) {pads = [0, 0, 1, 0, 1, 1, 1, 1], source.tensor = "pad2.out"} : (tensor<1x1x5x5xf32>) -> tensor<1x2x7x7xf32> loc("pad2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<3x2x3x3xf32>
    %4 = "tensorop.conv"(%0, %3) {pads = [2, 1, 2, 1], source.tensor = "conv4.out", strides = [2, 2]} : (tensor<1x2x5x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32> loc(fused["pad1", "conv4"])
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<3x2x3x3xf32>
    %6 = "tensorop.conv"(%2, %5) {source.tensor = "conv6.out"} : (tensor<1x2x7x7xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x5x5xf32> loc("conv6")
    "func.return"(%4, %6) : (tensor<1x3x3x3xf32>, tensor<1x3x5x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
