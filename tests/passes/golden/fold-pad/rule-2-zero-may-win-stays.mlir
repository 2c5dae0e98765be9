// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>) -> (tensor<1x2x5x5xf32>, tensor<1x2x10x10xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x5x5xf32>, %1: tensor<1x2x5x5xf32>):
    %2 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 1, 1, 1, 1], source.tensor = "pad1.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x7x7xf32> loc("pad1")
    %3 = "tensorop.relu"(%1) {source.tensor = "relu2.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32> loc("relu2")
    %4 = "tensorop.pad"(%3) {pads = [0, 0, 0, 0, 3, 3, 3, 3], source.tensor = "pad3.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x11x11xf32> loc("pad3")
    %5 = "tensorop.max_pool"(%2) {kernel = [3, 3], source.tensor = "max_pool4.out"} : (tensor<1x2x7x7xf32>) -> tensor<1x2x5x5xf32> loc("max_pool4")
    %6 = "tensorop.max_pool"(%4) {kernel = [2, 2], source.tensor = "max_pool5.out"} : (tensor<1x2x11x11xf32>) -> tensor<1x2x10x10xf32> loc("max_pool5")
    "func.return"(%5, %6) : (tensor<1x2x5x5xf32>, tensor<1x2x10x10xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fold-pad
// unchanged
