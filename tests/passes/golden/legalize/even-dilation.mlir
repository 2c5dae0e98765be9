// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x30x40xf32>) -> tensor<1x4x29x40xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x30x40xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x1x3x3xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %3 = "tensorop.conv"(%0, %1, %2) {dilations = [18, 1], group = 2, pads = [17, 18, 1, 1], source.tensor = "conv3.out"} : (tensor<1x2x30x40xf32>, tensor<4x1x3x3xf32>, tensor<4xf32>) -> tensor<1x4x29x40xf32> loc("conv3")
    "func.return"(%3) : (tensor<1x4x29x40xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x30x40xf32>) -> tensor<1x4x29x40xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x30x40xf32>):
    %1 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %2 = "tensorop.weight"() {key = "conv3.weight"} : () -> tensor<4x1x5x3xf32> loc("conv3")
    %3 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 17, 19, 1, 1]} : (tensor<1x2x30x40xf32>) -> tensor<1x2x66x42xf32> loc("conv3")
    %4 = "tensorop.reshape"(%3) {shape = [1, 2, 22, 3, 42, 1]} : (tensor<1x2x66x42xf32>) -> tensor<1x2x22x3x42x1xf32> loc("conv3")
    %5 = "tensorop.permute"(%4) {order = [0, 3, 5, 1, 2, 4]} : (tensor<1x2x22x3x42x1xf32>) -> tensor<1x3x1x2x22x42xf32> loc("conv3")
    %6 = "tensorop.reshape"(%5) {shape = [3, 2, 22, 42]} : (tensor<1x3x1x2x22x42xf32>) -> tensor<3x2x22x42xf32> loc("conv3")
    %7 = "tensorop.conv"(%6, %2, %1) {codegen.macs = 41760, dilations = [3, 1], group = 2} : (tensor<3x2x22x42xf32>, tensor<4x1x5x3xf32>, tensor<4xf32>) -> tensor<3x4x10x40xf32> loc("conv3")
    %8 = "tensorop.reshape"(%7) {shape = [1, 3, 1, 4, 10, 40]} : (tensor<3x4x10x40xf32>) -> tensor<1x3x1x4x10x40xf32> loc("conv3")
    %9 = "tensorop.permute"(%8) {order = [0, 3, 4, 1, 5, 2]} : (tensor<1x3x1x4x10x40xf32>) -> tensor<1x4x10x3x40x1xf32> loc("conv3")
    %10 = "tensorop.reshape"(%9) {shape = [1, 4, 30, 40]} : (tensor<1x4x10x3x40x1xf32>) -> tensor<1x4x30x40xf32> loc("conv3")
    %11 = "tensorop.slice"(%10) {ends = [1, 4, 29, 40], source.tensor = "conv3.out", starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]} : (tensor<1x4x30x40xf32>) -> tensor<1x4x29x40xf32> loc("conv3")
    "func.return"(%11) : (tensor<1x4x29x40xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
