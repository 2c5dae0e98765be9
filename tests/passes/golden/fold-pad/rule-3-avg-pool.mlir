// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x5x5xf32>) -> (tensor<1x2x3x3xf32>, tensor<1x2x5x5xf32>, tensor<1x2x6x7xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x5x5xf32>):
    %1 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 1, 0, 1, 1], source.tensor = "pad1.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x6x7xf32> loc("pad1")
    %2 = "tensorop.avg_pool"(%1) {count_include_pad = true, kernel = [3, 3], pads = [0, 1, 0, 0], source.tensor = "avg_pool2.out"} : (tensor<1x2x6x7xf32>) -> tensor<1x2x5x5xf32> loc("avg_pool2")
    %3 = "tensorop.avg_pool"(%1) {kernel = [2, 2], source.tensor = "avg_pool3.out", strides = [2, 2]} : (tensor<1x2x6x7xf32>) -> tensor<1x2x3x3xf32> loc("avg_pool3")
    %4 = "tensorop.avg_pool"(%1) {kernel = [3, 3], pads = [1, 1, 1, 1], source.tensor = "avg_pool4.out"} : (tensor<1x2x6x7xf32>) -> tensor<1x2x6x7xf32> loc("avg_pool4")
    "func.return"(%3, %2, %4) : (tensor<1x2x3x3xf32>, tensor<1x2x5x5xf32>, tensor<1x2x6x7xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fold-pad
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x5x5xf32>) -> (tensor<1x2x3x3xf32>, tensor<1x2x5x5xf32>, tensor<1x2x6x7xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x5x5xf32>):
    %1 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 1, 0, 1, 1], source.tensor = "pad1.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x6x7xf32> loc("pad1")
    %2 = "tensorop.avg_pool"(%0) {count_include_pad = true, kernel = [3, 3], pads = [1, 1, 1, 1], source.tensor = "avg_pool2.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32> loc(fused["pad1", "avg_pool2"])
    %3 = "tensorop.avg_pool"(%0) {count_include_pad = true, kernel = [2, 2], pads = [1, 0, 1, 1], source.tensor = "avg_pool3.out", strides = [2, 2]} : (tensor<1x2x5x5xf32>) -> tensor<1x2x3x3xf32> loc(fused["pad1", "avg_pool3"])
    %4 = "tensorop.avg_pool"(%1) {kernel = [3, 3], pads = [1, 1, 1, 1], source.tensor = "avg_pool4.out"} : (tensor<1x2x6x7xf32>) -> tensor<1x2x6x7xf32> loc("avg_pool4")
    "func.return"(%3, %2, %4) : (tensor<1x2x3x3xf32>, tensor<1x2x5x5xf32>, tensor<1x2x6x7xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
