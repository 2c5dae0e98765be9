// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x20x20xf32>) -> (tensor<1x2x3x3xf32>, tensor<1x3x10x7xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x20x20xf32>):
    %1 = "tensorop.max_pool"(%0) {kernel = [18, 18], pads = [16, 0, 0, 16], source.tensor = "max_pool1.out", strides = [9, 9]} : (tensor<1x2x20x20xf32>) -> tensor<1x2x3x3xf32> loc("max_pool1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<3x2x20x20xf32>
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<3xf32>
    %4 = "tensorop.conv"(%0, %2, %3) {pads = [16, 2, 2, 16], source.tensor = "conv4.out", strides = [2, 3]} : (tensor<1x2x20x20xf32>, tensor<3x2x20x20xf32>, tensor<3xf32>) -> tensor<1x3x10x7xf32> loc("conv4")
    "func.return"(%1, %4) : (tensor<1x2x3x3xf32>, tensor<1x3x10x7xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x20x20xf32>) -> (tensor<1x2x3x3xf32>, tensor<1x3x10x7xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x20x20xf32>):
    %1 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 0, 0, 0, 16], value = 0xFFF0000000000000 : f64} : (tensor<1x2x20x20xf32>) -> tensor<1x2x20x36xf32> loc("max_pool1")
    %2 = "tensorop.max_pool"(%1) {kernel = [1, 18], strides = [1, 9]} : (tensor<1x2x20x36xf32>) -> tensor<1x2x20x3xf32> loc("max_pool1")
    %3 = "tensorop.pad"(%2) {pads = [0, 0, 0, 0, 16, 0, 0, 0], value = 0xFFF0000000000000 : f64} : (tensor<1x2x20x3xf32>) -> tensor<1x2x36x3xf32> loc("max_pool1")
    %4 = "tensorop.max_pool"(%3) {kernel = [18, 1], source.tensor = "max_pool1.out", strides = [9, 1]} : (tensor<1x2x36x3xf32>) -> tensor<1x2x3x3xf32> loc("max_pool1")
    %5 = "tensorop.weight"() {key = "w2"} : () -> tensor<3x2x20x20xf32>
    %6 = "tensorop.weight"() {key = "w3"} : () -> tensor<3xf32>
    %7 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 16, 2, 2, 16]} : (tensor<1x2x20x20xf32>) -> tensor<1x2x38x38xf32> loc("conv4")
    %8 = "tensorop.conv"(%7, %5, %6) {source.tensor = "conv4.out", strides = [2, 3]} : (tensor<1x2x38x38xf32>, tensor<3x2x20x20xf32>, tensor<3xf32>) -> tensor<1x3x10x7xf32> loc("conv4")
    "func.return"(%4, %8) : (tensor<1x2x3x3xf32>, tensor<1x3x10x7xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
