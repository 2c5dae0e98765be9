// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4x4xf32>, tensor<5x3xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x1x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4x4xf32>, %1: tensor<5x3xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x3x1x1xf32>
    %3 = "tensorop.weight"() {key = "w2"} : () -> tensor<2xf32>
    %4 = "tensorop.conv"(%0, %2, %3) {source.tensor = "conv3.out"} : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32> loc("conv3")
    %5 = "tensorop.softmax"(%4) {axis = 1, source.tensor = "softmax4.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("softmax4")
    %6 = "tensorop.weight"() {key = "w5"} : () -> tensor<2x3x4x4xf32>
    %7 = "tensorop.conv"(%0, %6) {source.tensor = "conv6.out"} : (tensor<1x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<1x2x1x1xf32> loc("conv6")
    %8 = "tensorop.reshape"(%7) {shape = [1, 1, 2], source.tensor = "reshape7.out"} : (tensor<1x2x1x1xf32>) -> tensor<1x1x2xf32> loc("reshape7")
    %9 = "tensorop.weight"() {key = "w8"} : () -> tensor<3x2xf32>
    %10 = "tensorop.weight"() {key = "w9"} : () -> tensor<2xf32>
    %11 = "tensorop.matmul"(%1, %9, %10) {source.tensor = "matmul10.out"} : (tensor<5x3xf32>, tensor<3x2xf32>, tensor<2xf32>) -> tensor<5x2xf32> loc("matmul10")
    %12 = "tensorop.weight"() {key = "w11"} : () -> tensor<2x3xf32>
    %13 = "tensorop.matmul"(%1, %12) {source.tensor = "matmul12.out", transpose_right = true} : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32> loc("matmul12")
    %14 = "tensorop.softmax"(%8) {source.tensor = "softmax13.out"} : (tensor<1x1x2xf32>) -> tensor<1x1x2xf32> loc("softmax13")
    %15 = "tensorop.softmax"(%11) {axis = 1, source.tensor = "softmax14.out"} : (tensor<5x2xf32>) -> tensor<5x2xf32> loc("softmax14")
    %16 = "tensorop.softmax"(%13) {axis = 1, source.tensor = "softmax15.out"} : (tensor<5x2xf32>) -> tensor<5x2xf32> loc("softmax15")
    "func.return"(%5, %14, %15, %16) : (tensor<1x2x4x4xf32>, tensor<1x1x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>) -> ()
  }) {tensorop.input_names = ["data", "v"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after sigmoid-pairs
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4x4xf32>, tensor<5x3xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x1x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4x4xf32>, %1: tensor<5x3xf32>):
    %2 = "tensorop.weight"() {key = "w1.1"} : () -> tensor<2x3x1x1xf32>
    %3 = "tensorop.weight"() {key = "w2.1"} : () -> tensor<2xf32>
    %4 = "tensorop.conv"(%0, %2, %3) {quantize.layer = "conv3.out"} : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32> loc("conv3")
    %5 = "tensorop.sigmoid"(%4) {source.tensor = "softmax4.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("softmax4")
    %6 = "tensorop.weight"() {key = "w5.1"} : () -> tensor<2x3x4x4xf32>
    %7 = "tensorop.weight"() {key = "w8.1"} : () -> tensor<3x2xf32>
    %8 = "tensorop.weight"() {key = "w9.1"} : () -> tensor<2xf32>
    %9 = "tensorop.weight"() {key = "w11.1"} : () -> tensor<2x3xf32>
    %10 = "tensorop.conv"(%0, %6) {quantize.layer = "conv6.out"} : (tensor<1x3x4x4xf32>, tensor<2x3x4x4xf32>) -> tensor<1x2x1x1xf32> loc("conv6")
    %11 = "tensorop.reshape"(%10) {quantize.layer = "reshape7.out", shape = [1, 1, 2]} : (tensor<1x2x1x1xf32>) -> tensor<1x1x2xf32> loc("reshape7")
    %12 = "tensorop.sigmoid"(%11) {source.tensor = "softmax13.out"} : (tensor<1x1x2xf32>) -> tensor<1x1x2xf32> loc("softmax13")
    %13 = "tensorop.matmul"(%1, %7, %8) {quantize.layer = "matmul10.out"} : (tensor<5x3xf32>, tensor<3x2xf32>, tensor<2xf32>) -> tensor<5x2xf32> loc("matmul10")
    %14 = "tensorop.sigmoid"(%13) {source.tensor = "softmax14.out"} : (tensor<5x2xf32>) -> tensor<5x2xf32> loc("softmax14")
    %15 = "tensorop.matmul"(%1, %9) {quantize.layer = "matmul12.out", transpose_right = true} : (tensor<5x3xf32>, tensor<2x3xf32>) -> tensor<5x2xf32> loc("matmul12")
    %16 = "tensorop.sigmoid"(%15) {source.tensor = "softmax15.out"} : (tensor<5x2xf32>) -> tensor<5x2xf32> loc("softmax15")
    "func.return"(%5, %12, %14, %16) : (tensor<1x2x4x4xf32>, tensor<1x1x2xf32>, tensor<5x2xf32>, tensor<5x2xf32>) -> ()
  }) {tensorop.input_names = ["data", "v"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()
