// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>, tensor<1x3x4x5xf32>) -> (tensor<1x3x3x2xf32>, tensor<2x3x3x2xf32>, tensor<2x3x3x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>, %1: tensor<1x3x4x5xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x3x2x2xf32>
    %3 = "tensorop.weight"() {key = "w2"} : () -> tensor<1x3x2x2xf32>
    %4 = "tensorop.grid_sample"(%1, %3) {source.tensor = "grid_sample3.out"} : (tensor<1x3x4x5xf32>, tensor<1x3x2x2xf32>) -> tensor<1x3x3x2xf32> loc("grid_sample3")
    %5 = "tensorop.grid_sample"(%0, %2) {source.tensor = "grid_sample4.out"} : (tensor<2x3x4x5xf32>, tensor<2x3x2x2xf32>) -> tensor<2x3x3x2xf32> loc("grid_sample4")
    %6 = "tensorop.grid_sample"(%0, %2) {mode = "cubic", padding = "border", source.tensor = "grid_sample5.out"} : (tensor<2x3x4x5xf32>, tensor<2x3x2x2xf32>) -> tensor<2x3x3x2xf32> loc("grid_sample5")
    "func.return"(%4, %5, %6) : (tensor<1x3x3x2xf32>, tensor<2x3x3x2xf32>, tensor<2x3x3x2xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>, tensor<1x3x4x5xf32>) -> (tensor<1x3x3x2xf32>, tensor<2x3x3x2xf32>, tensor<2x3x3x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>, %1: tensor<1x3x4x5xf32>):
    %2 = "tensorop.weight"() {key = "grid_sample3.taps"} : () -> tensor<20x6xf32> loc("grid_sample3")
    %3 = "tensorop.reshape"(%1) {shape = [3, 20]} : (tensor<1x3x4x5xf32>) -> tensor<3x20xf32> loc("grid_sample3")
    %4 = "tensorop.matmul"(%3, %2) {codegen.macs = 0} : (tensor<3x20xf32>, tensor<20x6xf32>) -> tensor<3x6xf32> loc("grid_sample3")
    %5 = "tensorop.reshape"(%4) {shape = [1, 3, 3, 2], source.tensor = "grid_sample3.out"} : (tensor<3x6xf32>) -> tensor<1x3x3x2xf32> loc("grid_sample3")
    %6 = "tensorop.reshape"(%0) {shape = [2, 3, 20]} : (tensor<2x3x4x5xf32>) -> tensor<2x3x20xf32> loc("grid_sample4")
    %7 = "tensorop.slice"(%6) {ends = [1, 3, 20], starts = [0, 0, 0], steps = [1, 1, 1]} : (tensor<2x3x20xf32>) -> tensor<1x3x20xf32> loc("grid_sample4")
    %8 = "tensorop.weight"() {key = "grid_sample4.weight"} : () -> tensor<20x6xf32> loc("grid_sample4")
    %9 = "tensorop.reshape"(%7) {shape = [3, 20]} : (tensor<1x3x20xf32>) -> tensor<3x20xf32> loc("grid_sample4")
    %10 = "tensorop.matmul"(%9, %8) {codegen.macs = 0} : (tensor<3x20xf32>, tensor<20x6xf32>) -> tensor<3x6xf32> loc("grid_sample4")
    %11 = "tensorop.reshape"(%10) {shape = [1, 3, 6]} : (tensor<3x6xf32>) -> tensor<1x3x6xf32> loc("grid_sample4")
    %12 = "tensorop.slice"(%6) {ends = [2, 3, 20], starts = [1, 0, 0], steps = [1, 1, 1]} : (tensor<2x3x20xf32>) -> tensor<1x3x20xf32> loc("grid_sample4")
    %13 = "tensorop.weight"() {key = "grid_sample4.weight.1"} : () -> tensor<20x6xf32> loc("grid_sample4")
    %14 = "tensorop.reshape"(%12) {shape = [3, 20]} : (tensor<1x3x20xf32>) -> tensor<3x20xf32> loc("grid_sample4")
    %15 = "tensorop.matmul"(%14, %13) {codegen.macs = 0} : (tensor<3x20xf32>, tensor<20x6xf32>) -> tensor<3x6xf32> loc("grid_sample4")
    %16 = "tensorop.reshape"(%15) {shape = [1, 3, 6]} : (tensor<3x6xf32>) -> tensor<1x3x6xf32> loc("grid_sample4")
    %17 = "tensorop.concat"(%11, %16) {axis = 0} : (tensor<1x3x6xf32>, tensor<1x3x6xf32>) -> tensor<2x3x6xf32> loc("grid_sample4")
    %18 = "tensorop.reshape"(%17) {shape = [2, 3, 3, 2], source.tensor = "grid_sample4.out"} : (tensor<2x3x6xf32>) -> tensor<2x3x3x2xf32> loc("grid_sample4")
    %19 = "tensorop.reshape"(%0) {shape = [2, 3, 20]} : (tensor<2x3x4x5xf32>) -> tensor<2x3x20xf32> loc("grid_sample5")
    %20 = "tensorop.slice"(%19) {ends = [1, 3, 20], starts = [0, 0, 0], steps = [1, 1, 1]} : (tensor<2x3x20xf32>) -> tensor<1x3x20xf32> loc("grid_sample5")
    %21 = "tensorop.weight"() {key = "grid_sample5.weight"} : () -> tensor<20x6xf32> loc("grid_sample5")
    %22 = "tensorop.reshape"(%20) {shape = [3, 20]} : (tensor<1x3x20xf32>) -> tensor<3x20xf32> loc("grid_sample5")
    %23 = "tensorop.matmul"(%22, %21) {codegen.macs = 0} : (tensor<3x20xf32>, tensor<20x6xf32>) -> tensor<3x6xf32> loc("grid_sample5")
    %24 = "tensorop.reshape"(%23) {shape = [1, 3, 6]} : (tensor<3x6xf32>) -> tensor<1x3x6xf32> loc("grid_sample5")
    %25 = "tensorop.slice"(%19) {ends = [2, 3, 20], starts = [1, 0, 0], steps = [1, 1, 1]} : (tensor<2x3x20xf32>) -> tensor<1x3x20xf32> loc("grid_sample5")
    %26 = "tensorop.weight"() {key = "grid_sample5.weight.1"} : () -> tensor<20x6xf32> loc("grid_sample5")
    %27 = "tensorop.reshape"(%25) {shape = [3, 20]} : (tensor<1x3x20xf32>) -> tensor<3x20xf32> loc("grid_sample5")
    %28 = "tensorop.matmul"(%27, %26) {codegen.macs = 0} : (tensor<3x20xf32>, tensor<20x6xf32>) -> tensor<3x6xf32> loc("grid_sample5")
    %29 = "tensorop.reshape"(%28) {shape = [1, 3, 6]} : (tensor<3x6xf32>) -> tensor<1x3x6xf32> loc("grid_sample5")
    %30 = "tensorop.concat"(%24, %29) {axis = 0} : (tensor<1x3x6xf32>, tensor<1x3x6xf32>) -> tensor<2x3x6xf32> loc("grid_sample5")
    %31 = "tensorop.reshape"(%30) {shape = [2, 3, 3, 2], source.tensor = "grid_sample5.out"} : (tensor<2x3x6xf32>) -> tensor<2x3x3x2xf32> loc("grid_sample5")
    "func.return"(%5, %18, %31) : (tensor<1x3x3x2xf32>, tensor<2x3x3x2xf32>, tensor<2x3x3x2xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
