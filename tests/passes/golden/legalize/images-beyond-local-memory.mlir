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
    %3 = "tensorop.avg_pool"(%0) {kernel = [1, 5], strides = [1, 5]} : (tensor<1x1x300x320xf32>) -> tensor<1x1x300x64xf32> loc("avg_pool1")
    %4 = "tensorop.avg_pool"(%3) {kernel = [1, 4], strides = [1, 4]} : (tensor<1x1x300x64xf32>) -> tensor<1x1x300x16xf32> loc("avg_pool1")
    %5 = "tensorop.avg_pool"(%4) {kernel = [1, 4], strides = [1, 4]} : (tensor<1x1x300x16xf32>) -> tensor<1x1x300x4xf32> loc("avg_pool1")
    %6 = "tensorop.avg_pool"(%5) {kernel = [1, 4], strides = [1, 4]} : (tensor<1x1x300x4xf32>) -> tensor<1x1x300x1xf32> loc("avg_pool1")
    %7 = "tensorop.avg_pool"(%6) {kernel = [5, 1], strides = [5, 1]} : (tensor<1x1x300x1xf32>) -> tensor<1x1x60x1xf32> loc("avg_pool1")
    %8 = "tensorop.avg_pool"(%7) {kernel = [4, 1], strides = [4, 1]} : (tensor<1x1x60x1xf32>) -> tensor<1x1x15x1xf32> loc("avg_pool1")
    %9 = "tensorop.avg_pool"(%8) {kernel = [15, 1], source.tensor = "avg_pool1.out", strides = [15, 1]} : (tensor<1x1x15x1xf32>) -> tensor<1x1x1x1xf32> loc("avg_pool1")
    %10 = "tensorop.max_pool"(%1) {kernel = [1, 5], strides = [1, 5]} : (tensor<1x1x300x320xf32>) -> tensor<1x1x300x64xf32> loc("max_pool2")
    %11 = "tensorop.max_pool"(%10) {kernel = [1, 4], strides = [1, 4]} : (tensor<1x1x300x64xf32>) -> tensor<1x1x300x16xf32> loc("max_pool2")
    %12 = "tensorop.max_pool"(%11) {kernel = [1, 4], strides = [1, 4]} : (tensor<1x1x300x16xf32>) -> tensor<1x1x300x4xf32> loc("max_pool2")
    %13 = "tensorop.max_pool"(%12) {kernel = [1, 4], strides = [1, 4]} : (tensor<1x1x300x4xf32>) -> tensor<1x1x300x1xf32> loc("max_pool2")
    %14 = "tensorop.max_pool"(%13) {kernel = [5, 1], strides = [5, 1]} : (tensor<1x1x300x1xf32>) -> tensor<1x1x60x1xf32> loc("max_pool2")
    %15 = "tensorop.max_pool"(%14) {kernel = [4, 1], strides = [4, 1]} : (tensor<1x1x60x1xf32>) -> tensor<1x1x15x1xf32> loc("max_pool2")
    %16 = "tensorop.max_pool"(%15) {kernel = [15, 1], source.tensor = "max_pool2.out", strides = [15, 1]} : (tensor<1x1x15x1xf32>) -> tensor<1x1x1x1xf32> loc("max_pool2")
    %17 = "tensorop.max_pool"(%2) {kernel = [1, 7], strides = [1, 7]} : (tensor<1x2x1x2100xf32>) -> tensor<1x2x1x300xf32> loc("max_pool3")
    %18 = "tensorop.max_pool"(%17) {kernel = [1, 5], strides = [1, 5]} : (tensor<1x2x1x300xf32>) -> tensor<1x2x1x60xf32> loc("max_pool3")
    %19 = "tensorop.max_pool"(%18) {kernel = [1, 6], strides = [1, 6]} : (tensor<1x2x1x60xf32>) -> tensor<1x2x1x10xf32> loc("max_pool3")
    %20 = "tensorop.max_pool"(%19) {kernel = [1, 5], source.tensor = "max_pool3.out", strides = [1, 5]} : (tensor<1x2x1x10xf32>) -> tensor<1x2x1x2xf32> loc("max_pool3")
    "func.return"(%9, %16, %20) : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x2x1x2xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
