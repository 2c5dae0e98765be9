// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x50x35xf32>) -> (tensor<1x4x3x2xf32>, tensor<1x2x3x7xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x50x35xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x3x16x16xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %3 = "tensorop.conv"(%0, %1, %2) {source.tensor = "conv3.out", strides = [16, 16]} : (tensor<1x3x50x35xf32>, tensor<4x3x16x16xf32>, tensor<4xf32>) -> tensor<1x4x3x2xf32> loc("conv3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<2x3x3x4xf32>
    %5 = "tensorop.conv"(%0, %4) {pads = [1, 0, 0, 1], source.tensor = "conv5.out", strides = [17, 5]} : (tensor<1x3x50x35xf32>, tensor<2x3x3x4xf32>) -> tensor<1x2x3x7xf32> loc("conv5")
    "func.return"(%3, %5) : (tensor<1x4x3x2xf32>, tensor<1x2x3x7xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x50x35xf32>) -> (tensor<1x4x3x2xf32>, tensor<1x2x3x7xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x50x35xf32>):
    %1 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %2 = "tensorop.slice"(%0) {ends = [1, 3, 48, 32], starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]} : (tensor<1x3x50x35xf32>) -> tensor<1x3x48x32xf32> loc("conv3")
    %3 = "tensorop.reshape"(%2) {shape = [1, 3, 3, 16, 2, 16]} : (tensor<1x3x48x32xf32>) -> tensor<1x3x3x16x2x16xf32> loc("conv3")
    %4 = "tensorop.permute"(%3) {order = [0, 1, 3, 5, 2, 4]} : (tensor<1x3x3x16x2x16xf32>) -> tensor<1x3x16x16x3x2xf32> loc("conv3")
    %5 = "tensorop.reshape"(%4) {shape = [1, 768, 3, 2]} : (tensor<1x3x16x16x3x2xf32>) -> tensor<1x768x3x2xf32> loc("conv3")
    %6 = "tensorop.weight"() {key = "conv3.weight"} : () -> tensor<4x768x1x1xf32> loc("conv3")
    %7 = "tensorop.conv"(%5, %6, %1) {source.tensor = "conv3.out"} : (tensor<1x768x3x2xf32>, tensor<4x768x1x1xf32>, tensor<4xf32>) -> tensor<1x4x3x2xf32> loc("conv3")
    %8 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 1, 0, 0, 0]} : (tensor<1x3x50x35xf32>) -> tensor<1x3x51x35xf32> loc("conv5")
    %9 = "tensorop.reshape"(%8) {shape = [1, 3, 3, 17, 7, 5]} : (tensor<1x3x51x35xf32>) -> tensor<1x3x3x17x7x5xf32> loc("conv5")
    %10 = "tensorop.permute"(%9) {order = [0, 1, 3, 5, 2, 4]} : (tensor<1x3x3x17x7x5xf32>) -> tensor<1x3x17x5x3x7xf32> loc("conv5")
    %11 = "tensorop.reshape"(%10) {shape = [1, 255, 3, 7]} : (tensor<1x3x17x5x3x7xf32>) -> tensor<1x255x3x7xf32> loc("conv5")
    %12 = "tensorop.weight"() {key = "conv5.weight"} : () -> tensor<2x255x1x1xf32> loc("conv5")
    %13 = "tensorop.conv"(%11, %12) {codegen.macs = 1512, source.tensor = "conv5.out"} : (tensor<1x255x3x7xf32>, tensor<2x255x1x1xf32>) -> tensor<1x2x3x7xf32> loc("conv5")
    "func.return"(%7, %13) : (tensor<1x4x3x2xf32>, tensor<1x2x3x7xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
