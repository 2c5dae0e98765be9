// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2xf32>, tensor<1x2xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2xf32>, %1: tensor<1x2xf32>):
    %2 = "tensorop.pad"(%0) {pads = [0, 0, 1, 0], source.tensor = "pad1.out", value = 2.0} : (tensor<1x2xf32>) -> tensor<1x3xf32> loc("pad1")
    %3 = "tensorop.pad"(%2) {pads = [0, 1, 0, 1], source.tensor = "pad2.out", value = 2.0} : (tensor<1x3xf32>) -> tensor<2x4xf32> loc("pad2")
    %4 = "tensorop.pad"(%1) {pads = [0, 0, 1, 0], source.tensor = "pad3.out"} : (tensor<1x2xf32>) -> tensor<1x3xf32> loc("pad3")
    %5 = "tensorop.pad"(%4) {pads = [0, 1, 0, 1], source.tensor = "pad4.out", value = 2.0} : (tensor<1x3xf32>) -> tensor<2x4xf32> loc("pad4")
    "func.return"(%3, %5) : (tensor<2x4xf32>, tensor<2x4xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fold-pad
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2xf32>, tensor<1x2xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2xf32>, %1: tensor<1x2xf32>):
    %2 = "tensorop.pad"(%0) {pads = [0, 1, 1, 1], source.tensor = "pad2.out", value = 2.0} : (tensor<1x2xf32>) -> tensor<2x4xf32> loc(fused["pad1", "pad2"])
    %3 = "tensorop.pad"(%1) {pads = [0, 0, 1, 0], source.tensor = "pad3.out"} : (tensor<1x2xf32>) -> tensor<1x3xf32> loc("pad3")
    %4 = "tensorop.pad"(%3) {pads = [0, 1, 0, 1], source.tensor = "pad4.out", value = 2.0} : (tensor<1x3xf32>) -> tensor<2x4xf32> loc("pad4")
    "func.return"(%2, %4) : (tensor<2x4xf32>, tensor<2x4xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
