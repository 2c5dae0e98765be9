// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x5xf32>) -> (tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x5xf32>):
    %1 = "tensorop.pad"(%0) {mode = "reflect", pads = [0, 0, 0, 0, 2, 1, 0, 3], source.tensor = "pad1.out"} : (tensor<1x2x4x5xf32>) -> tensor<1x2x7x8xf32> loc("pad1")
    %2 = "tensorop.pad"(%0) {mode = "edge", pads = [0, 0, 0, 0, 2, 1, 0, 3], source.tensor = "pad2.out"} : (tensor<1x2x4x5xf32>) -> tensor<1x2x7x8xf32> loc("pad2")
    %3 = "tensorop.pad"(%0) {mode = "symmetric", pads = [0, 0, 0, 0, 2, 1, 0, 3], source.tensor = "pad3.out"} : (tensor<1x2x4x5xf32>) -> tensor<1x2x7x8xf32> loc("pad3")
    "func.return"(%1, %2, %3) : (tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x5xf32>) -> (tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x5xf32>):
    %1 = "tensorop.slice"(%0) {ends = [1, 2, 3, 5], starts = [0, 0, 2, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x5xf32> loc("pad1")
    %2 = "tensorop.slice"(%0) {ends = [1, 2, 2, 5], starts = [0, 0, 1, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x5xf32> loc("pad1")
    %3 = "tensorop.slice"(%0) {ends = [1, 2, 3, 5], starts = [0, 0, 2, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x5xf32> loc("pad1")
    %4 = "tensorop.concat"(%1, %2, %0, %3) {axis = 2} : (tensor<1x2x1x5xf32>, tensor<1x2x1x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x1x5xf32>) -> tensor<1x2x7x5xf32> loc("pad1")
    %5 = "tensorop.slice"(%4) {ends = [1, 2, 7, 4], starts = [0, 0, 0, 3], steps = [1, 1, 1, 1]} : (tensor<1x2x7x5xf32>) -> tensor<1x2x7x1xf32> loc("pad1")
    %6 = "tensorop.slice"(%4) {ends = [1, 2, 7, 3], starts = [0, 0, 0, 2], steps = [1, 1, 1, 1]} : (tensor<1x2x7x5xf32>) -> tensor<1x2x7x1xf32> loc("pad1")
    %7 = "tensorop.slice"(%4) {ends = [1, 2, 7, 2], starts = [0, 0, 0, 1], steps = [1, 1, 1, 1]} : (tensor<1x2x7x5xf32>) -> tensor<1x2x7x1xf32> loc("pad1")
    %8 = "tensorop.concat"(%4, %5, %6, %7) {axis = 3, source.tensor = "pad1.out"} : (tensor<1x2x7x5xf32>, tensor<1x2x7x1xf32>, tensor<1x2x7x1xf32>, tensor<1x2x7x1xf32>) -> tensor<1x2x7x8xf32> loc("pad1")
    %9 = "tensorop.slice"(%0) {ends = [1, 2, 1, 5], starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x5xf32> loc("pad2")
    %10 = "tensorop.slice"(%0) {ends = [1, 2, 1, 5], starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x5xf32> loc("pad2")
    %11 = "tensorop.slice"(%0) {ends = [1, 2, 4, 5], starts = [0, 0, 3, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x5xf32> loc("pad2")
    %12 = "tensorop.concat"(%9, %10, %0, %11) {axis = 2} : (tensor<1x2x1x5xf32>, tensor<1x2x1x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x1x5xf32>) -> tensor<1x2x7x5xf32> loc("pad2")
    %13 = "tensorop.slice"(%12) {ends = [1, 2, 7, 5], starts = [0, 0, 0, 4], steps = [1, 1, 1, 1]} : (tensor<1x2x7x5xf32>) -> tensor<1x2x7x1xf32> loc("pad2")
    %14 = "tensorop.slice"(%12) {ends = [1, 2, 7, 5], starts = [0, 0, 0, 4], steps = [1, 1, 1, 1]} : (tensor<1x2x7x5xf32>) -> tensor<1x2x7x1xf32> loc("pad2")
    %15 = "tensorop.slice"(%12) {ends = [1, 2, 7, 5], starts = [0, 0, 0, 4], steps = [1, 1, 1, 1]} : (tensor<1x2x7x5xf32>) -> tensor<1x2x7x1xf32> loc("pad2")
    %16 = "tensorop.concat"(%12, %13, %14, %15) {axis = 3, source.tensor = "pad2.out"} : (tensor<1x2x7x5xf32>, tensor<1x2x7x1xf32>, tensor<1x2x7x1xf32>, tensor<1x2x7x1xf32>) -> tensor<1x2x7x8xf32> loc("pad2")
    %17 = "tensorop.slice"(%0) {ends = [1, 2, 2, 5], starts = [0, 0, 1, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x5xf32> loc("pad3")
    %18 = "tensorop.slice"(%0) {ends = [1, 2, 1, 5], starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x5xf32> loc("pad3")
    %19 = "tensorop.slice"(%0) {ends = [1, 2, 4, 5], starts = [0, 0, 3, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x4x5xf32>) -> tensor<1x2x1x5xf32> loc("pad3")
    %20 = "tensorop.concat"(%17, %18, %0, %19) {axis = 2} : (tensor<1x2x1x5xf32>, tensor<1x2x1x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x1x5xf32>) -> tensor<1x2x7x5xf32> loc("pad3")
    %21 = "tensorop.slice"(%20) {ends = [1, 2, 7, 5], starts = [0, 0, 0, 4], steps = [1, 1, 1, 1]} : (tensor<1x2x7x5xf32>) -> tensor<1x2x7x1xf32> loc("pad3")
    %22 = "tensorop.slice"(%20) {ends = [1, 2, 7, 4], starts = [0, 0, 0, 3], steps = [1, 1, 1, 1]} : (tensor<1x2x7x5xf32>) -> tensor<1x2x7x1xf32> loc("pad3")
    %23 = "tensorop.slice"(%20) {ends = [1, 2, 7, 3], starts = [0, 0, 0, 2], steps = [1, 1, 1, 1]} : (tensor<1x2x7x5xf32>) -> tensor<1x2x7x1xf32> loc("pad3")
    %24 = "tensorop.concat"(%20, %21, %22, %23) {axis = 3, source.tensor = "pad3.out"} : (tensor<1x2x7x5xf32>, tensor<1x2x7x1xf32>, tensor<1x2x7x1xf32>, tensor<1x2x7x1xf32>) -> tensor<1x2x7x8xf32> loc("pad3")
    "func.return"(%8, %16, %24) : (tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
