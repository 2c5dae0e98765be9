// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x1x8x8xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x1x8x8xf32>):
    %1 = "tensorop.slice"(%0) {ends = [1, 1, 8, 8], source.tensor = "slice1.out", starts = [0, 0, 0, 0], steps = [1, 1, 2, 1]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x8xf32> loc("slice1")
    %2 = "tensorop.slice"(%1) {ends = [1, 1, 4, 8], source.tensor = "slice2.out", starts = [0, 0, 0, 1], steps = [1, 1, 1, 2]} : (tensor<1x1x4x8xf32>) -> tensor<1x1x4x4xf32> loc("slice2")
    %3 = "tensorop.slice"(%0) {ends = [1, 1, 8, 8], source.tensor = "slice3.out", starts = [0, 0, 0, 0], steps = [1, 1, 2, 2]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> loc("slice3")
    %4 = "tensorop.slice"(%0) {ends = [1, 1, 8, 8], source.tensor = "slice4.out", starts = [0, 0, 1, 0], steps = [1, 1, 2, 2]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> loc("slice4")
    %5 = "tensorop.slice"(%0) {ends = [1, 1, 8, 8], source.tensor = "slice5.out", starts = [0, 0, 1, 1], steps = [1, 1, 2, 2]} : (tensor<1x1x8x8xf32>) -> tensor<1x1x4x4xf32> loc("slice5")
    %6 = "tensorop.concat"(%3, %4, %2, %5) {axis = 1, source.tensor = "concat6.out"} : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x4x4x4xf32> loc("concat6")
    %7 = "tensorop.weight"() {key = "w7"} : () -> tensor<2x4x3x3xf32>
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<2xf32>
    %9 = "tensorop.conv"(%6, %7, %8) {pads = [1, 1, 1, 1], source.tensor = "conv9.out"} : (tensor<1x4x4x4xf32>, tensor<2x4x3x3xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32> loc("conv9")
    "func.return"(%9) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after fold-phases
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x1x8x8xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x1x8x8xf32>):
    %1 = "tensorop.weight"() {key = "w8"} : () -> tensor<2xf32>
    %2 = "tensorop.weight"() {key = "w7.1"} : () -> tensor<2x1x6x6xf32>
    %3 = "tensorop.conv"(%0, %2, %1) {pads = [2, 2, 2, 2], source.tensor = "conv9.out", strides = [2, 2]} : (tensor<1x1x8x8xf32>, tensor<2x1x6x6xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32> loc(fused["slice3", "slice4", "slice2", "slice1", "slice5", "concat6", "conv9"])
    "func.return"(%3) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
