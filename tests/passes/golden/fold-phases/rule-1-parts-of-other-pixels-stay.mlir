// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x1x8x8xf32>, %1: tensor<1x1x8x8xf32>):
    %2 = "tensorop.slice"(%0) {ends = [1, 1, 8, 8], source.tensor = "slice1.out", starts = [0, 0, 0, 0], steps = [1, 1, 2, 2]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> loc("slice1")
    %3 = "tensorop.slice"(%0) {ends = [1, 1, 8, 8], source.tensor = "slice2.out", starts = [0, 0, 0, 1], steps = [1, 1, 2, 2]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> loc("slice2")
    %4 = "tensorop.slice"(%0) {ends = [1, 1, 8, 8], source.tensor = "slice3.out", starts = [0, 0, 1, 0], steps = [1, 1, 2, 2]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> loc("slice3")
    %5 = "tensorop.slice"(%1) {ends = [1, 1, 8, 8], source.tensor = "slice4.out", starts = [0, 0, 1, 1], steps = [1, 1, 2, 2]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> loc("slice4")
    %6 = "tensorop.concat"(%2, %3, %4, %5) {axis = 1, source.tensor = "concat5.out"} : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x4x4x4xf32> loc("concat5")
    %7 = "tensorop.slice"(%0) {ends = [1, 1, 8, 8], source.tensor = "slice6.out", starts = [0, 0, 0, 0], steps = [1, 1, 2, 2]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> loc("slice6")
    %8 = "tensorop.slice"(%0) {ends = [1, 1, 8, 8], source.tensor = "slice7.out", starts = [0, 0, 0, 0], steps = [1, 1, 2, 2]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> loc("slice7")
    %9 = "tensorop.slice"(%0) {ends = [1, 1, 8, 8], source.tensor = "slice8.out", starts = [0, 0, 1, 0], steps = [1, 1, 2, 2]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> loc("slice8")
    %10 = "tensorop.slice"(%0) {ends = [1, 1, 8, 8], source.tensor = "slice9.out", starts = [0, 0, 1, 0], steps = [1, 1, 2, 2]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> loc("slice9")
    %11 = "tensorop.concat"(%7, %8, %9, %10) {axis = 1, source.tensor = "concat10.out"} : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x4x4x4xf32> loc("concat10")
    %12 = "tensorop.weight"() {key = "w11"} : () -> tensor<2x4x3x3xf32>
    %13 = "tensorop.conv"(%6, %12) {source.tensor = "conv12.out"} : (tensor<1x4x4x4xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x2x2xf32> loc("conv12")
    %14 = "tensorop.conv"(%11, %12) {source.tensor = "conv13.out"} : (tensor<1x4x4x4xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x2x2xf32> loc("conv13")
    "func.return"(%13, %14) : (tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fold-phases
// unchanged
