// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x1x1xf32>, tensor<1x3x6x5xf32>) -> tensor<1x4x3x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x1x1xf32>, %1: tensor<1x3x6x5xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x3x3x3xf32>
    %3 = "tensorop.mul"(%2, %0) {source.tensor = "mul2.out"} : (tensor<4x3x3x3xf32>, tensor<1x3x1x1xf32>) -> tensor<4x3x3x3xf32> loc("mul2")
    %4 = "tensorop.weight"() {key = "w3"} : () -> tensor<4xf32>
    %5 = "tensorop.conv"(%1, %3, %4) {pads = [1, 1, 1, 1], source.tensor = "conv4.out", strides = [2, 1]} : (tensor<1x3x6x5xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x3x5xf32> loc("conv4")
    "func.return"(%5) : (tensor<1x4x3x5xf32>) -> ()
  }) {tensorop.input_names = ["b", "data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x1x1xf32>, tensor<1x3x6x5xf32>) -> tensor<1x4x3x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x1x1xf32>, %1: tensor<1x3x6x5xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x3x3x3xf32>
    %3 = "tensorop.tile"(%0) {reps = [4, 1, 3, 3]} : (tensor<1x3x1x1xf32>) -> tensor<4x3x3x3xf32> loc("mul2")
    %4 = "tensorop.mul"(%2, %3) {source.tensor = "mul2.out"} : (tensor<4x3x3x3xf32>, tensor<4x3x3x3xf32>) -> tensor<4x3x3x3xf32> loc("mul2")
    %5 = "tensorop.pad"(%1) {pads = [0, 0, 0, 0, 1, 1, 1, 1]} : (tensor<1x3x6x5xf32>) -> tensor<1x3x8x7xf32> loc("conv4")
    %6 = "tensorop.slice"(%5) {ends = [1, 3, 5, 5], starts = [0, 0, 0, 0], steps = [1, 1, 2, 1]} : (tensor<1x3x8x7xf32>) -> tensor<1x3x3x5xf32> loc("conv4")
    %7 = "tensorop.slice"(%5) {ends = [1, 3, 5, 6], starts = [0, 0, 0, 1], steps = [1, 1, 2, 1]} : (tensor<1x3x8x7xf32>) -> tensor<1x3x3x5xf32> loc("conv4")
    %8 = "tensorop.slice"(%5) {ends = [1, 3, 5, 7], starts = [0, 0, 0, 2], steps = [1, 1, 2, 1]} : (tensor<1x3x8x7xf32>) -> tensor<1x3x3x5xf32> loc("conv4")
    %9 = "tensorop.slice"(%5) {ends = [1, 3, 6, 5], starts = [0, 0, 1, 0], steps = [1, 1, 2, 1]} : (tensor<1x3x8x7xf32>) -> tensor<1x3x3x5xf32> loc("conv4")
    %10 = "tensorop.slice"(%5) {ends = [1, 3, 6, 6], starts = [0, 0, 1, 1], steps = [1, 1, 2, 1]} : (tensor<1x3x8x7xf32>) -> tensor<1x3x3x5xf32> loc("conv4")
    %11 = "tensorop.slice"(%5) {ends = [1, 3, 6, 7], starts = [0, 0, 1, 2], steps = [1, 1, 2, 1]} : (tensor<1x3x8x7xf32>) -> tensor<1x3x3x5xf32> loc("conv4")
    %12 = "tensorop.slice"(%5) {ends = [1, 3, 7, 5], starts = [0, 0, 2, 0], steps = [1, 1, 2, 1]} : (tensor<1x3x8x7xf32>) -> tensor<1x3x3x5xf32> loc("conv4")
    %13 = "tensorop.slice"(%5) {ends = [1, 3, 7, 6], starts = [0, 0, 2, 1], steps = [1, 1, 2, 1]} : (tensor<1x3x8x7xf32>) -> tensor<1x3x3x5xf32> loc("conv4")
    %14 = "tensorop.slice"(%5) {ends = [1, 3, 7, 7], starts = [0, 0, 2, 2], steps = [1, 1, 2, 1]} : (tensor<1x3x8x7xf32>) -> tensor<1x3x3x5xf32> loc("conv4")
    %15 = "tensorop.reshape"(%6) {shape = [3, 15]} : (tensor<1x3x3x5xf32>) -> tensor<3x15xf32> loc("conv4")
    %16 = "tensorop.reshape"(%7) {shape = [3, 15]} : (tensor<1x3x3x5xf32>) -> tensor<3x15xf32> loc("conv4")
    %17 = "tensorop.reshape"(%8) {shape = [3, 15]} : (tensor<1x3x3x5xf32>) -> tensor<3x15xf32> loc("conv4")
    %18 = "tensorop.reshape"(%9) {shape = [3, 15]} : (tensor<1x3x3x5xf32>) -> tensor<3x15xf32> loc("conv4")
    %19 = "tensorop.reshape"(%10) {shape = [3, 15]} : (tensor<1x3x3x5xf32>) -> tensor<3x15xf32> loc("conv4")
    %20 = "tensorop.reshape"(%11) {shape = [3, 15]} : (tensor<1x3x3x5xf32>) -> tensor<3x15xf32> loc("conv4")
    %21 = "tensorop.reshape"(%12) {shape = [3, 15]} : (tensor<1x3x3x5xf32>) -> tensor<3x15xf32> loc("conv4")
    %22 = "tensorop.reshape"(%13) {shape = [3, 15]} : (tensor<1x3x3x5xf32>) -> tensor<3x15xf32> loc("conv4")
    %23 = "tensorop.reshape"(%14) {shape = [3, 15]} : (tensor<1x3x3x5xf32>) -> tensor<3x15xf32> loc("conv4")
    %24 = "tensorop.concat"(%15, %16, %17, %18, %19, %20, %21, %22, %23) {axis = 0} : (tensor<3x15xf32>, tensor<3x15xf32>, tensor<3x15xf32>, tensor<3x15xf32>, tensor<3x15xf32>, tensor<3x15xf32>, tensor<3x15xf32>, tensor<3x15xf32>, tensor<3x15xf32>) -> tensor<27x15xf32> loc("conv4")
    %25 = "tensorop.permute"(%4) {order = [0, 2, 3, 1]} : (tensor<4x3x3x3xf32>) -> tensor<4x3x3x3xf32> loc("conv4")
    %26 = "tensorop.reshape"(%25) {shape = [4, 27]} : (tensor<4x3x3x3xf32>) -> tensor<4x27xf32> loc("conv4")
    %27 = "tensorop.matmul"(%26, %24) : (tensor<4x27xf32>, tensor<27x15xf32>) -> tensor<4x15xf32> loc("conv4")
    %28 = "tensorop.reshape"(%27) {shape = [1, 4, 3, 5]} : (tensor<4x15xf32>) -> tensor<1x4x3x5xf32> loc("conv4")
    %29 = "tensorop.weight"() {key = "conv4.reshaped"} : () -> tensor<1x4x1x1xf32> loc("conv4")
    %30 = "tensorop.add"(%28, %29) {source.tensor = "conv4.out"} : (tensor<1x4x3x5xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x3x5xf32> loc("conv4")
    "func.return"(%30) : (tensor<1x4x3x5xf32>) -> ()
  }) {tensorop.input_names = ["b", "data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
