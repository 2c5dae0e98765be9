// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x6x6xf32>, tensor<1x2x6x6xf32>) -> (tensor<1x3x6x6xf32>, tensor<1x3x5x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x6x6xf32>, %1: tensor<1x2x6x6xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x2x1x1xf32>
    %3 = "tensorop.conv"(%0, %2) {source.tensor = "conv2.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv2")
    %4 = "tensorop.weight"() {key = "w3"} : () -> tensor<3x2x1x1xf32>
    %5 = "tensorop.conv"(%1, %4) {source.tensor = "conv4.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv4")
    %6 = "tensorop.avg_pool"(%3) {kernel = [3, 3], pads = [1, 1, 1, 1], source.tensor = "avg_pool5.out"} : (tensor<1x3x6x6xf32>) -> tensor<1x3x6x6xf32> loc("avg_pool5")
    %7 = "tensorop.weight"() {key = "w6"} : () -> tensor<3xf32>
    %8 = "tensorop.weight"() {key = "w7"} : () -> tensor<3xf32>
    %9 = "tensorop.scale"(%6, %7, %8) {source.tensor = "scale8.out"} : (tensor<1x3x6x6xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x6x6xf32> loc("scale8")
    %10 = "tensorop.max_pool"(%5) {kernel = [2, 2], source.tensor = "max_pool9.out"} : (tensor<1x3x6x6xf32>) -> tensor<1x3x5x5xf32> loc("max_pool9")
    %11 = "tensorop.weight"() {key = "w10"} : () -> tensor<3xf32>
    %12 = "tensorop.weight"() {key = "w11"} : () -> tensor<3xf32>
    %13 = "tensorop.scale"(%10, %11, %12) {source.tensor = "scale12.out"} : (tensor<1x3x5x5xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x5x5xf32> loc("scale12")
    "func.return"(%9, %13) : (tensor<1x3x6x6xf32>, tensor<1x3x5x5xf32>) -> ()
  }) {tensorop.input_names = ["a", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after move-scales
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x6x6xf32>, tensor<1x2x6x6xf32>) -> (tensor<1x3x6x6xf32>, tensor<1x3x5x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x6x6xf32>, %1: tensor<1x2x6x6xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x2x1x1xf32>
    %3 = "tensorop.conv"(%0, %2) {source.tensor = "conv2.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv2")
    %4 = "tensorop.weight"() {key = "w3"} : () -> tensor<3x2x1x1xf32>
    %5 = "tensorop.conv"(%1, %4) {source.tensor = "conv4.out"} : (tensor<1x2x6x6xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x6x6xf32> loc("conv4")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<3xf32>
    %7 = "tensorop.weight"() {key = "w7"} : () -> tensor<3xf32>
    %8 = "tensorop.scale"(%3, %6, %7) : (tensor<1x3x6x6xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x6x6xf32> loc("scale8")
    %9 = "tensorop.avg_pool"(%8) {kernel = [3, 3], pads = [1, 1, 1, 1], source.tensor = "scale8.out"} : (tensor<1x3x6x6xf32>) -> tensor<1x3x6x6xf32> loc(fused["avg_pool5", "scale8"])
    %10 = "tensorop.weight"() {key = "w10"} : () -> tensor<3xf32>
    %11 = "tensorop.weight"() {key = "w11"} : () -> tensor<3xf32>
    %12 = "tensorop.scale"(%5, %10, %11) : (tensor<1x3x6x6xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x6x6xf32> loc("scale12")
    %13 = "tensorop.max_pool"(%12) {kernel = [2, 2], source.tensor = "scale12.out"} : (tensor<1x3x6x6xf32>) -> tensor<1x3x5x5xf32> loc(fused["max_pool9", "scale12"])
    "func.return"(%9, %13) : (tensor<1x3x6x6xf32>, tensor<1x3x5x5xf32>) -> ()
  }) {tensorop.input_names = ["a", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
