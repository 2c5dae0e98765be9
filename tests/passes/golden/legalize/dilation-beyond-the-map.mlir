// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x9x20xf32>) -> tensor<1x4x9x20xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x9x20xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x2x3x3xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %3 = "tensorop.conv"(%0, %1, %2) {dilations = [16, 16], pads = [16, 16, 16, 16], source.tensor = "conv3.out"} : (tensor<1x2x9x20xf32>, tensor<4x2x3x3xf32>, tensor<4xf32>) -> tensor<1x4x9x20xf32> loc("conv3")
    "func.return"(%3) : (tensor<1x4x9x20xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x9x20xf32>) -> tensor<1x4x9x20xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x9x20xf32>):
    %1 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %2 = "tensorop.weight"() {key = "conv3.weight.1"} : () -> tensor<4x2x1x5xf32> loc("conv3")
    %3 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 0, 0, 16, 16]} : (tensor<1x2x9x20xf32>) -> tensor<1x2x9x52xf32> loc("conv3")
    %4 = "tensorop.reshape"(%3) {shape = [1, 2, 9, 1, 26, 2]} : (tensor<1x2x9x52xf32>) -> tensor<1x2x9x1x26x2xf32> loc("conv3")
    %5 = "tensorop.permute"(%4) {order = [0, 3, 5, 1, 2, 4]} : (tensor<1x2x9x1x26x2xf32>) -> tensor<1x1x2x2x9x26xf32> loc("conv3")
    %6 = "tensorop.reshape"(%5) {shape = [2, 2, 9, 26]} : (tensor<1x1x2x2x9x26xf32>) -> tensor<2x2x9x26xf32> loc("conv3")
    %7 = "tensorop.conv"(%6, %2, %1) {codegen.macs = 12960, dilations = [1, 4]} : (tensor<2x2x9x26xf32>, tensor<4x2x1x5xf32>, tensor<4xf32>) -> tensor<2x4x9x10xf32> loc("conv3")
    %8 = "tensorop.reshape"(%7) {shape = [1, 1, 2, 4, 9, 10]} : (tensor<2x4x9x10xf32>) -> tensor<1x1x2x4x9x10xf32> loc("conv3")
    %9 = "tensorop.permute"(%8) {order = [0, 3, 4, 1, 5, 2]} : (tensor<1x1x2x4x9x10xf32>) -> tensor<1x4x9x1x10x2xf32> loc("conv3")
    %10 = "tensorop.reshape"(%9) {shape = [1, 4, 9, 20], source.tensor = "conv3.out"} : (tensor<1x4x9x1x10x2xf32>) -> tensor<1x4x9x20xf32> loc("conv3")
    "func.return"(%10) : (tensor<1x4x9x20xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
