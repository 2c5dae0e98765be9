// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x30x40xf32>) -> tensor<1x4x31x40xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x30x40xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x1x3x3xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %3 = "tensorop.conv"(%0, %1, %2) {dilations = [17, 1], group = 2, pads = [17, 18, 1, 1], source.tensor = "conv3.out"} : (tensor<1x2x30x40xf32>, tensor<4x1x3x3xf32>, tensor<4xf32>) -> tensor<1x4x31x40xf32> loc("conv3")
    "func.return"(%3) : (tensor<1x4x31x40xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x30x40xf32>) -> tensor<1x4x31x40xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x30x40xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x1x3x3xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %3 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 17, 21, 1, 1]} : (tensor<1x2x30x40xf32>) -> tensor<1x2x68x42xf32> loc("conv3")
    %4 = "tensorop.reshape"(%3) {shape = [1, 2, 4, 17, 42, 1]} : (tensor<1x2x68x42xf32>) -> tensor<1x2x4x17x42x1xf32> loc("conv3")
    %5 = "tensorop.permute"(%4) {order = [0, 3, 5, 1, 2, 4]} : (tensor<1x2x4x17x42x1xf32>) -> tensor<1x17x1x2x4x42xf32> loc("conv3")
    %6 = "tensorop.reshape"(%5) {shape = [17, 2, 4, 42]} : (tensor<1x17x1x2x4x42xf32>) -> tensor<17x2x4x42xf32> loc("conv3")
    %7 = "tensorop.conv"(%6, %1, %2) {codegen.macs = 44640, group = 2} : (tensor<17x2x4x42xf32>, tensor<4x1x3x3xf32>, tensor<4xf32>) -> tensor<17x4x2x40xf32> loc("conv3")
    %8 = "tensorop.reshape"(%7) {shape = [1, 17, 1, 4, 2, 40]} : (tensor<17x4x2x40xf32>) -> tensor<1x17x1x4x2x40xf32> loc("conv3")
    %9 = "tensorop.permute"(%8) {order = [0, 3, 4, 1, 5, 2]} : (tensor<1x17x1x4x2x40xf32>) -> tensor<1x4x2x17x40x1xf32> loc("conv3")
    %10 = "tensorop.reshape"(%9) {shape = [1, 4, 34, 40]} : (tensor<1x4x2x17x40x1xf32>) -> tensor<1x4x34x40xf32> loc("conv3")
    %11 = "tensorop.slice"(%10) {ends = [1, 4, 31, 40], source.tensor = "conv3.out", starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]} : (tensor<1x4x34x40xf32>) -> tensor<1x4x31x40xf32> loc("conv3")
    "func.return"(%11) : (tensor<1x4x31x40xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
