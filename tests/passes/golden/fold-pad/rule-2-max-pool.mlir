// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>, tensor<1x2x5x5xi8>) -> (tensor<1x2x2x2xf32>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xi8>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x5x5xf32>, %1: tensor<1x2x5x5xf32>, %2: tensor<1x2x5x5xi8>):
    %3 = "tensorop.pad"(%0) {pads = [0, 0, 0, 0, 1, 0, 0, 1], source.tensor = "pad1.out", value = 0xFFF0000000000000 : f64} : (tensor<1x2x5x5xf32>) -> tensor<1x2x6x6xf32> loc("pad1")
    %4 = "tensorop.relu"(%1) {source.tensor = "relu2.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32> loc("relu2")
    %5 = "tensorop.max_pool"(%4) {kernel = [1, 1], source.tensor = "max_pool3.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32> loc("max_pool3")
    %6 = "tensorop.pad"(%5) {pads = [0, 0, 0, 0, 1, 1, 1, 1], source.tensor = "pad4.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x7x7xf32> loc("pad4")
    %7 = "tensorop.pad"(%2) {pads = [0, 0, 0, 0, 1, 1, 1, 1], source.tensor = "pad5.out", value = -128.0} : (tensor<1x2x5x5xi8>) -> tensor<1x2x7x7xi8> loc("pad5")
    %8 = "tensorop.max_pool"(%3) {kernel = [3, 3], source.tensor = "max_pool6.out", strides = [2, 2]} : (tensor<1x2x6x6xf32>) -> tensor<1x2x2x2xf32> loc("max_pool6")
    %9 = "tensorop.max_pool"(%6) {kernel = [3, 3], source.tensor = "max_pool7.out", strides = [2, 2]} : (tensor<1x2x7x7xf32>) -> tensor<1x2x3x3xf32> loc("max_pool7")
    %10 = "tensorop.max_pool"(%7) {kernel = [3, 3], source.tensor = "max_pool8.out", strides = [2, 2]} : (tensor<1x2x7x7xi8>) -> tensor<1x2x3x3xi8> loc("max_pool8")
    "func.return"(%8, %9, %10) : (tensor<1x2x2x2xf32>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xi8>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fold-pad
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>, tensor<1x2x5x5xi8>) -> (tensor<1x2x2x2xf32>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xi8>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x5x5xf32>, %1: tensor<1x2x5x5xf32>, %2: tensor<1x2x5x5xi8>):
    %3 = "tensorop.relu"(%1) {source.tensor = "relu2.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32> loc("relu2")
    %4 = "tensorop.max_pool"(%3) {kernel = [1, 1], source.tensor = "max_pool3.out"} : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32> loc("max_pool3")
    %5 = "tensorop.max_pool"(%0) {kernel = [3, 3], pads = [1, 0, 0, 1], source.tensor = "max_pool6.out", strides = [2, 2]} : (tensor<1x2x5x5xf32>) -> tensor<1x2x2x2xf32> loc(fused["pad1", "max_pool6"])
    %6 = "tensorop.max_pool"(%4) {kernel = [3, 3], pads = [1, 1, 1, 1], source.tensor = "max_pool7.out", strides = [2, 2]} : (tensor<1x2x5x5xf32>) -> tensor<1x2x3x3xf32> loc(fused["pad4", "max_pool7"])
    %7 = "tensorop.max_pool"(%2) {kernel = [3, 3], pads = [1, 1, 1, 1], source.tensor = "max_pool8.out", strides = [2, 2]} : (tensor<1x2x5x5xi8>) -> tensor<1x2x3x3xi8> loc(fused["pad5", "max_pool8"])
    "func.return"(%5, %6, %7) : (tensor<1x2x2x2xf32>, tensor<1x2x3x3xf32>, tensor<1x2x3x3xi8>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
