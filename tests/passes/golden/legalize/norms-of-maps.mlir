// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x6xf32>):
    %1 = "tensorop.mean_variance_norm"(%0) {axes = [2, 3], epsilon = 0.001, source.tensor = "mean_variance_norm1.out"} : (tensor<2x3x4x6xf32>) -> tensor<2x3x4x6xf32> loc("mean_variance_norm1")
    %2 = "tensorop.mean_variance_norm"(%0) {axes = [1, 2, 3], normalize_variance = false, source.tensor = "mean_variance_norm2.out"} : (tensor<2x3x4x6xf32>) -> tensor<2x3x4x6xf32> loc("mean_variance_norm2")
    "func.return"(%1, %2) : (tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x6xf32>):
    %1 = "tensorop.reduce"(%0) {axes = [2, 3], method = "mean"} : (tensor<2x3x4x6xf32>) -> tensor<2x3x1x1xf32> loc("mean_variance_norm1")
    %2 = "tensorop.sub"(%0, %1) : (tensor<2x3x4x6xf32>, tensor<2x3x1x1xf32>) -> tensor<2x3x4x6xf32> loc("mean_variance_norm1")
    %3 = "tensorop.weight"() {key = "mean_variance_norm1.number"} : () -> tensor<1x1x1x1xf32> loc("mean_variance_norm1")
    %4 = "tensorop.pow"(%2, %3) : (tensor<2x3x4x6xf32>, tensor<1x1x1x1xf32>) -> tensor<2x3x4x6xf32> loc("mean_variance_norm1")
    %5 = "tensorop.reduce"(%4) {axes = [2, 3], method = "mean"} : (tensor<2x3x4x6xf32>) -> tensor<2x3x1x1xf32> loc("mean_variance_norm1")
    %6 = "tensorop.sqrt"(%5) : (tensor<2x3x1x1xf32>) -> tensor<2x3x1x1xf32> loc("mean_variance_norm1")
    %7 = "tensorop.weight"() {key = "mean_variance_norm1.number.1"} : () -> tensor<1x1x1x1xf32> loc("mean_variance_norm1")
    %8 = "tensorop.add"(%6, %7) : (tensor<2x3x1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<2x3x1x1xf32> loc("mean_variance_norm1")
    %9 = "tensorop.weight"() {key = "mean_variance_norm1.number.2"} : () -> tensor<1x1x1x1xf32> loc("mean_variance_norm1")
    %10 = "tensorop.div"(%9, %8) : (tensor<1x1x1x1xf32>, tensor<2x3x1x1xf32>) -> tensor<2x3x1x1xf32> loc("mean_variance_norm1")
    %11 = "tensorop.mul"(%2, %10) {source.tensor = "mean_variance_norm1.out"} : (tensor<2x3x4x6xf32>, tensor<2x3x1x1xf32>) -> tensor<2x3x4x6xf32> loc("mean_variance_norm1")
    %12 = "tensorop.reshape"(%0) {shape = [1, 2, 8, 9]} : (tensor<2x3x4x6xf32>) -> tensor<1x2x8x9xf32> loc("mean_variance_norm2")
    %13 = "tensorop.avg_pool"(%12) {kernel = [8, 9]} : (tensor<1x2x8x9xf32>) -> tensor<1x2x1x1xf32> loc("mean_variance_norm2")
    %14 = "tensorop.reshape"(%13) {shape = [2, 1, 1, 1]} : (tensor<1x2x1x1xf32>) -> tensor<2x1x1x1xf32> loc("mean_variance_norm2")
    %15 = "tensorop.sub"(%0, %14) {source.tensor = "mean_variance_norm2.out"} : (tensor<2x3x4x6xf32>, tensor<2x1x1x1xf32>) -> tensor<2x3x4x6xf32> loc("mean_variance_norm2")
    "func.return"(%11, %15) : (tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
