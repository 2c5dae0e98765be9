// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x2x2xf32>) -> (tensor<1x3x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x4x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x2x2xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x3x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x3x2x2xf32>, tensor<3x3x1x1xf32>) -> tensor<1x3x2x2xf32> loc("conv2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<2x3x1x1xf32>
    %4 = "tensorop.conv"(%0, %3) {source.tensor = "conv4.out"} : (tensor<1x3x2x2xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x2x2xf32> loc("conv4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<2x3x1x1xf32>
    %6 = "tensorop.conv"(%0, %5) {activation = "relu", source.tensor = "conv6.out"} : (tensor<1x3x2x2xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x2x2xf32> loc("conv6")
    %7 = "tensorop.weight"() {key = "w7"} : () -> tensor<2x3x1x1xf32>
    %8 = "tensorop.conv"(%0, %7) {source.tensor = "conv8.out"} : (tensor<1x3x2x2xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x2x2xf32> loc("conv8")
    %9 = "tensorop.reshape"(%8) {shape = [1, 4, 2], source.tensor = "reshape9.out"} : (tensor<1x2x2x2xf32>) -> tensor<1x4x2xf32> loc("reshape9")
    %10 = "tensorop.softmax"(%2) {axis = 1, source.tensor = "softmax10.out"} : (tensor<1x3x2x2xf32>) -> tensor<1x3x2x2xf32> loc("softmax10")
    %11 = "tensorop.softmax"(%4) {axis = 1, source.tensor = "softmax11.out"} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32> loc("softmax11")
    %12 = "tensorop.softmax"(%6) {axis = 1, source.tensor = "softmax12.out"} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32> loc("softmax12")
    %13 = "tensorop.softmax"(%9) {axis = 2, source.tensor = "softmax13.out"} : (tensor<1x4x2xf32>) -> tensor<1x4x2xf32> loc("softmax13")
    %14 = "tensorop.weight"() {key = "w14"} : () -> tensor<2x3x1x1xf32>
    %15 = "tensorop.conv"(%0, %14) {source.tensor = "conv15.out"} : (tensor<1x3x2x2xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x2x2xf32> loc("conv15")
    %16 = "tensorop.softmax"(%15) {axis = 2, source.tensor = "softmax16.out"} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32> loc("softmax16")
    "func.return"(%10, %11, %12, %13, %4, %16) : (tensor<1x3x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>, tensor<1x4x2xf32>, tensor<1x2x2x2xf32>, tensor<1x2x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3", "out4", "out5"]} : () -> ()
}) : () -> ()

// after sigmoid-pairs
// unchanged
