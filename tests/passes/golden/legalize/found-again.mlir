// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x40x3x2xf32>, tensor<1x40x16x15xf32>) -> tensor<1x40x14x14xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x40x3x2xf32>, %1: tensor<1x40x16x15xf32>):
    %2 = "tensorop.reshape"(%0) {shape = [40, 1, 3, 2], source.tensor = "reshape1.out"} : (tensor<1x40x3x2xf32>) -> tensor<40x1x3x2xf32> loc("reshape1")
    %3 = "tensorop.conv"(%1, %2) {group = 40, source.tensor = "conv2.out"} : (tensor<1x40x16x15xf32>, tensor<40x1x3x2xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    "func.return"(%3) : (tensor<1x40x14x14xf32>) -> ()
  }) {tensorop.input_names = ["b", "data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x40x3x2xf32>, tensor<1x40x16x15xf32>) -> tensor<1x40x14x14xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x40x3x2xf32>, %1: tensor<1x40x16x15xf32>):
    %2 = "tensorop.reshape"(%0) {shape = [40, 1, 3, 2], source.tensor = "reshape1.out"} : (tensor<1x40x3x2xf32>) -> tensor<40x1x3x2xf32> loc("reshape1")
    %3 = "tensorop.slice"(%1) {ends = [1, 40, 14, 14], starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]} : (tensor<1x40x16x15xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %4 = "tensorop.slice"(%1) {ends = [1, 40, 14, 15], starts = [0, 0, 0, 1], steps = [1, 1, 1, 1]} : (tensor<1x40x16x15xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %5 = "tensorop.slice"(%1) {ends = [1, 40, 15, 14], starts = [0, 0, 1, 0], steps = [1, 1, 1, 1]} : (tensor<1x40x16x15xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %6 = "tensorop.slice"(%1) {ends = [1, 40, 15, 15], starts = [0, 0, 1, 1], steps = [1, 1, 1, 1]} : (tensor<1x40x16x15xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %7 = "tensorop.slice"(%1) {ends = [1, 40, 16, 14], starts = [0, 0, 2, 0], steps = [1, 1, 1, 1]} : (tensor<1x40x16x15xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %8 = "tensorop.slice"(%1) {ends = [1, 40, 16, 15], starts = [0, 0, 2, 1], steps = [1, 1, 1, 1]} : (tensor<1x40x16x15xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %9 = "tensorop.slice"(%2) {ends = [40, 1, 1, 1], starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]} : (tensor<40x1x3x2xf32>) -> tensor<40x1x1x1xf32> loc("conv2")
    %10 = "tensorop.reshape"(%9) {shape = [1, 40, 1, 1]} : (tensor<40x1x1x1xf32>) -> tensor<1x40x1x1xf32> loc("conv2")
    %11 = "tensorop.mul"(%3, %10) : (tensor<1x40x14x14xf32>, tensor<1x40x1x1xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %12 = "tensorop.slice"(%2) {ends = [40, 1, 1, 2], starts = [0, 0, 0, 1], steps = [1, 1, 1, 1]} : (tensor<40x1x3x2xf32>) -> tensor<40x1x1x1xf32> loc("conv2")
    %13 = "tensorop.reshape"(%12) {shape = [1, 40, 1, 1]} : (tensor<40x1x1x1xf32>) -> tensor<1x40x1x1xf32> loc("conv2")
    %14 = "tensorop.mul"(%4, %13) : (tensor<1x40x14x14xf32>, tensor<1x40x1x1xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %15 = "tensorop.add"(%11, %14) : (tensor<1x40x14x14xf32>, tensor<1x40x14x14xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %16 = "tensorop.slice"(%2) {ends = [40, 1, 2, 1], starts = [0, 0, 1, 0], steps = [1, 1, 1, 1]} : (tensor<40x1x3x2xf32>) -> tensor<40x1x1x1xf32> loc("conv2")
    %17 = "tensorop.reshape"(%16) {shape = [1, 40, 1, 1]} : (tensor<40x1x1x1xf32>) -> tensor<1x40x1x1xf32> loc("conv2")
    %18 = "tensorop.mul"(%5, %17) : (tensor<1x40x14x14xf32>, tensor<1x40x1x1xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %19 = "tensorop.add"(%15, %18) : (tensor<1x40x14x14xf32>, tensor<1x40x14x14xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %20 = "tensorop.slice"(%2) {ends = [40, 1, 2, 2], starts = [0, 0, 1, 1], steps = [1, 1, 1, 1]} : (tensor<40x1x3x2xf32>) -> tensor<40x1x1x1xf32> loc("conv2")
    %21 = "tensorop.reshape"(%20) {shape = [1, 40, 1, 1]} : (tensor<40x1x1x1xf32>) -> tensor<1x40x1x1xf32> loc("conv2")
    %22 = "tensorop.mul"(%6, %21) : (tensor<1x40x14x14xf32>, tensor<1x40x1x1xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %23 = "tensorop.add"(%19, %22) : (tensor<1x40x14x14xf32>, tensor<1x40x14x14xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %24 = "tensorop.slice"(%2) {ends = [40, 1, 3, 1], starts = [0, 0, 2, 0], steps = [1, 1, 1, 1]} : (tensor<40x1x3x2xf32>) -> tensor<40x1x1x1xf32> loc("conv2")
    %25 = "tensorop.reshape"(%24) {shape = [1, 40, 1, 1]} : (tensor<40x1x1x1xf32>) -> tensor<1x40x1x1xf32> loc("conv2")
    %26 = "tensorop.mul"(%7, %25) : (tensor<1x40x14x14xf32>, tensor<1x40x1x1xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %27 = "tensorop.add"(%23, %26) : (tensor<1x40x14x14xf32>, tensor<1x40x14x14xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %28 = "tensorop.slice"(%2) {ends = [40, 1, 3, 2], starts = [0, 0, 2, 1], steps = [1, 1, 1, 1]} : (tensor<40x1x3x2xf32>) -> tensor<40x1x1x1xf32> loc("conv2")
    %29 = "tensorop.reshape"(%28) {shape = [1, 40, 1, 1]} : (tensor<40x1x1x1xf32>) -> tensor<1x40x1x1xf32> loc("conv2")
    %30 = "tensorop.mul"(%8, %29) : (tensor<1x40x14x14xf32>, tensor<1x40x1x1xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    %31 = "tensorop.add"(%27, %30) {codegen.macs = 47040, source.tensor = "conv2.out"} : (tensor<1x40x14x14xf32>, tensor<1x40x14x14xf32>) -> tensor<1x40x14x14xf32> loc("conv2")
    "func.return"(%31) : (tensor<1x40x14x14xf32>) -> ()
  }) {tensorop.input_names = ["b", "data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
