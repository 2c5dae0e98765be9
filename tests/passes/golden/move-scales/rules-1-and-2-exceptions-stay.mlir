// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x6x6xf32>, tensor<1x2x6x6xf32>, tensor<1x2x6x6xf32>) -> (tensor<1x3x6x6xf32>, tensor<1x3x5x5xf32>, tensor<1x3x6x6xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x6x6xf32>, %1: tensor<1x2x6x6xf32>, %2: tensor<1x2x6x6xf32>):
    %3 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x2x1x1xf32>
    %4 = "tensorop.conv"(%0, %3) {source.tensor = "conv2.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv2")
    %5 = "tensorop.weight"() {key = "w3"} : () -> tensor<3x2x1x1xf32>
    %6 = "tensorop.conv"(%1, %5) {source.tensor = "conv4.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv4")
    %7 = "tensorop.weight"() {key = "w5"} : () -> tensor<3x2x1x1xf32>
    %8 = "tensorop.conv"(%2, %7) {source.tensor = "conv6.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv6")
    %9 = "tensorop.avg_pool"(%4) {count_include_pad = true, kernel = [3, 3], pads = [1, 1, 1, 1], source.tensor = "avg_pool7.out"} : (tensor<1x3x6x6xf32>) -> tensor<1x3x6x6xf32> loc("avg_pool7")
    %10 = "tensorop.weight"() {key = "w8"} : () -> tensor<3xf32>
    %11 = "tensorop.weight"() {key = "w9"} : () -> tensor<3xf32>
    %12 = "tensorop.scale"(%9, %10, %11) {source.tensor = "scale10.out"} : (tensor<1x3x6x6xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x6x6xf32> loc("scale10")
    %13 = "tensorop.max_pool"(%6) {kernel = [2, 2], source.tensor = "max_pool11.out"} : (tensor<1x3x6x6xf32>) -> tensor<1x3x5x5xf32> loc("max_pool11")
    %14 = "tensorop.weight"() {key = "w12"} : () -> tensor<3xf32>
    %15 = "tensorop.scale"(%13, %14) {source.tensor = "scale13.out"} : (tensor<1x3x5x5xf32>, tensor<3xf32>) -> tensor<1x3x5x5xf32> loc("scale13")
    %16 = "tensorop.relu"(%8) {source.tensor = "relu14.out"} : (tensor<1x3x6x6xf32>) -> tensor<1x3x6x6xf32> loc("relu14")
    %17 = "tensorop.weight"() {key = "w15"} : () -> tensor<3xf32>
    %18 = "tensorop.scale"(%16, %17) {source.tensor = "scale16.out"} : (tensor<1x3x6x6xf32>, tensor<3xf32>) -> tensor<1x3x6x6xf32> loc("scale16")
    "func.return"(%12, %15, %18) : (tensor<1x3x6x6xf32>, tensor<1x3x5x5xf32>, tensor<1x3x6x6xf32>) -> ()
  }) {tensorop.input_names = ["a", "b", "c"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after move-scales
// unchanged
