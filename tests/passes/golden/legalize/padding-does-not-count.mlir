// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x6x5xf32>) -> (tensor<2x3x6x5xf32>, tensor<2x3x3x3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x6x5xf32>):
    %1 = "tensorop.avg_pool"(%0) {kernel = [3, 3], pads = [1, 1, 1, 1], source.tensor = "avg_pool1.out"} : (tensor<2x3x6x5xf32>) -> tensor<2x3x6x5xf32> loc("avg_pool1")
    %2 = "tensorop.avg_pool"(%0) {ceil_mode = true, count_include_pad = true, kernel = [3, 2], source.tensor = "avg_pool2.out", strides = [2, 2]} : (tensor<2x3x6x5xf32>) -> tensor<2x3x3x3xf32> loc("avg_pool2")
    "func.return"(%1, %2) : (tensor<2x3x6x5xf32>, tensor<2x3x3x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x6x5xf32>) -> (tensor<2x3x6x5xf32>, tensor<2x3x3x3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x6x5xf32>):
    %1 = "tensorop.avg_pool"(%0) {count_include_pad = true, kernel = [3, 3], pads = [1, 1, 1, 1]} : (tensor<2x3x6x5xf32>) -> tensor<2x3x6x5xf32> loc("avg_pool1")
    %2 = "tensorop.reshape"(%1) {shape = [6, 30]} : (tensor<2x3x6x5xf32>) -> tensor<6x30xf32> loc("avg_pool1")
    %3 = "tensorop.weight"() {key = "avg_pool1.window_over_count"} : () -> tensor<30xf32> loc("avg_pool1")
    %4 = "tensorop.scale"(%2, %3) : (tensor<6x30xf32>, tensor<30xf32>) -> tensor<6x30xf32> loc("avg_pool1")
    %5 = "tensorop.reshape"(%4) {shape = [2, 3, 6, 5], source.tensor = "avg_pool1.out"} : (tensor<6x30xf32>) -> tensor<2x3x6x5xf32> loc("avg_pool1")
    %6 = "tensorop.avg_pool"(%0) {count_include_pad = true, kernel = [3, 2], pads = [0, 1, 0, 1], strides = [2, 2]} : (tensor<2x3x6x5xf32>) -> tensor<2x3x3x3xf32> loc("avg_pool2")
    %7 = "tensorop.reshape"(%6) {shape = [6, 9]} : (tensor<2x3x3x3xf32>) -> tensor<6x9xf32> loc("avg_pool2")
    %8 = "tensorop.weight"() {key = "avg_pool2.window_over_count"} : () -> tensor<9xf32> loc("avg_pool2")
    %9 = "tensorop.scale"(%7, %8) : (tensor<6x9xf32>, tensor<9xf32>) -> tensor<6x9xf32> loc("avg_pool2")
    %10 = "tensorop.reshape"(%9) {shape = [2, 3, 3, 3], source.tensor = "avg_pool2.out"} : (tensor<6x9xf32>) -> tensor<2x3x3x3xf32> loc("avg_pool2")
    "func.return"(%5, %10) : (tensor<2x3x6x5xf32>, tensor<2x3x3x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
