// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x9x8xf32>) -> tensor<1x2x8x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x9x8xf32>):
    %1 = "tensorop.max_pool"(%0) {dilations = [2, 3], kernel = [3, 2], pads = [2, 1, 0, 0], source.tensor = "max_pool1.out", strides = [1, 2]} : (tensor<1x2x9x8xf32>) -> tensor<1x2x8x3xf32> loc("max_pool1")
    "func.return"(%1) : (tensor<1x2x8x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x9x8xf32>) -> tensor<1x2x8x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x9x8xf32>):
    %1 = "tensorop.slice"(%0) {ends = [1, 2, 9, 5], starts = [0, 0, 0, 0], steps = [1, 1, 1, 2]} : (tensor<1x2x9x8xf32>) -> tensor<1x2x9x3xf32> loc("max_pool1")
    %2 = "tensorop.slice"(%0) {ends = [1, 2, 9, 8], starts = [0, 0, 0, 3], steps = [1, 1, 1, 2]} : (tensor<1x2x9x8xf32>) -> tensor<1x2x9x3xf32> loc("max_pool1")
    %3 = "tensorop.max"(%1, %2) : (tensor<1x2x9x3xf32>, tensor<1x2x9x3xf32>) -> tensor<1x2x9x3xf32> loc("max_pool1")
    %4 = "tensorop.pad"(%3) {pads = [0, 0, 0, 0, 2, 1, 0, 0], value = 0xFFF0000000000000 : f64} : (tensor<1x2x9x3xf32>) -> tensor<1x2x12x3xf32> loc("max_pool1")
    %5 = "tensorop.slice"(%4) {ends = [1, 2, 8, 3], starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x12x3xf32>) -> tensor<1x2x8x3xf32> loc("max_pool1")
    %6 = "tensorop.slice"(%4) {ends = [1, 2, 10, 3], starts = [0, 0, 2, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x12x3xf32>) -> tensor<1x2x8x3xf32> loc("max_pool1")
    %7 = "tensorop.max"(%5, %6) : (tensor<1x2x8x3xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x8x3xf32> loc("max_pool1")
    %8 = "tensorop.slice"(%4) {ends = [1, 2, 12, 3], starts = [0, 0, 4, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x12x3xf32>) -> tensor<1x2x8x3xf32> loc("max_pool1")
    %9 = "tensorop.max"(%7, %8) {source.tensor = "max_pool1.out"} : (tensor<1x2x8x3xf32>, tensor<1x2x8x3xf32>) -> tensor<1x2x8x3xf32> loc("max_pool1")
    "func.return"(%9) : (tensor<1x2x8x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
