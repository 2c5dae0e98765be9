// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x1x300x320xf32>, tensor<1x1x300x320xf32>, tensor<1x2x1x2100xf32>) -> (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x2x1x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x1x300x320xf32>, %1: tensor<1x1x300x320xf32>, %2: tensor<1x2x1x2100xf32>):
    %3 = "tensorop.avg_pool"(%0) {kernel = [300, 320], source.tensor = "avg_pool1.out"} : (tensor<1x1x300x320xf32>) -> tensor<1x1x1x1xf32> loc("avg_pool1")
    %4 = "tensorop.max_pool"(%1) {kernel = [300, 320], source.tensor = "max_pool2.out"} : (tensor<1x1x300x320xf32>) -> tensor<1x1x1x1xf32> loc("max_pool2")
    %5 = "tensorop.max_pool"(%2) {kernel = [1, 1050], source.tensor = "max_pool3.out", strides = [1, 1050]} : (tensor<1x2x1x2100xf32>) -> tensor<1x2x1x2xf32> loc("max_pool3")
    "func.return"(%3, %4, %5) : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x2x1x2xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x1x300x320xf32>, tensor<1x1x300x320xf32>, tensor<1x2x1x2100xf32>) -> (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x2x1x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x1x300x320xf32>, %1: tensor<1x1x300x320xf32>, %2: tensor<1x2x1x2100xf32>):
    %3 = "tensorop.avg_pool"(%0) {count_include_pad = true, kernel = [1, 320]} : (tensor<1x1x300x320xf32>) -> tensor<1x1x300x1xf32> loc("avg_pool1")
    %4 = "tensorop.avg_pool"(%3) {count_include_pad = true, kernel = [300, 1], source.tensor = "avg_pool1.out"} : (tensor<1x1x300x1xf32>) -> tensor<1x1x1x1xf32> loc("avg_pool1")
    %5 = "tensorop.max_pool"(%1) {kernel = [1, 320]} : (tensor<1x1x300x320xf32>) -> tensor<1x1x300x1xf32> loc("max_pool2")
    %6 = "tensorop.max_pool"(%5) {kernel = [300, 1], source.tensor = "max_pool2.out"} : (tensor<1x1x300x1xf32>) -> tensor<1x1x1x1xf32> loc("max_pool2")
    %7 = "tensorop.max_pool"(%2) {kernel = [1, 7], strides = [1, 7]} : (tensor<1x2x1x2100xf32>) -> tensor<1x2x1x300xf32> loc("max_pool3")
    %8 = "tensorop.max_pool"(%7) {kernel = [1, 5], strides = [1, 5]} : (tensor<1x2x1x300xf32>) -> tensor<1x2x1x60xf32> loc("max_pool3")
    %9 = "tensorop.max_pool"(%8) {kernel = [1, 6], strides = [1, 6]} : (tensor<1x2x1x60xf32>) -> tensor<1x2x1x10xf32> loc("max_pool3")
    %10 = "tensorop.max_pool"(%9) {kernel = [1, 5], source.tensor = "max_pool3.out", strides = [1, 5]} : (tensor<1x2x1x10xf32>) -> tensor<1x2x1x2xf32> loc("max_pool3")
    "func.return"(%4, %6, %10) : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x2x1x2xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
