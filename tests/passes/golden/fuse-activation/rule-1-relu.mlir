// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x2x4x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x2x3x3xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<2xf32>
    %3 = "tensorop.conv"(%0, %1, %2) {pads = [1, 1, 1, 1], source.tensor = "conv3.out"} : (tensor<1x2x4x4xf32>, tensor<2x2x3x3xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32> loc("conv3")
    %4 = "tensorop.relu"(%3) {source.tensor = "relu4.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("relu4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<2x2x1x1xf32>
    %6 = "tensorop.deconv"(%4, %5) {source.tensor = "deconv6.out"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("deconv6")
    %7 = "tensorop.relu"(%6) {source.tensor = "relu7.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("relu7")
    %8 = "tensorop.add"(%7, %4) {source.tensor = "add8.out"} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("add8")
    %9 = "tensorop.relu"(%8) {source.tensor = "relu9.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("relu9")
    %10 = "tensorop.weight"() {key = "w10"} : () -> tensor<4x3xf32>
    %11 = "tensorop.matmul"(%9, %10) {source.tensor = "matmul11.out"} : (tensor<1x2x4x4xf32>, tensor<4x3xf32>) -> tensor<1x2x4x3xf32> loc("matmul11")
    %12 = "tensorop.relu"(%11) {source.tensor = "relu12.out"} : (tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32> loc("relu12")
    "func.return"(%12) : (tensor<1x2x4x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after fuse-activation
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x2x4x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x2x3x3xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<2xf32>
    %3 = "tensorop.conv"(%0, %1, %2) {activation = "relu", pads = [1, 1, 1, 1], source.tensor = "relu4.out"} : (tensor<1x2x4x4xf32>, tensor<2x2x3x3xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32> loc(fused["conv3", "relu4"])
    %4 = "tensorop.weight"() {key = "w5"} : () -> tensor<2x2x1x1xf32>
    %5 = "tensorop.deconv"(%3, %4) {activation = "relu", source.tensor = "relu7.out"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc(fused["deconv6", "relu7"])
    %6 = "tensorop.add"(%5, %3) {activation = "relu", source.tensor = "relu9.out"} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc(fused["add8", "relu9"])
    %7 = "tensorop.weight"() {key = "w10"} : () -> tensor<4x3xf32>
    %8 = "tensorop.matmul"(%6, %7) {activation = "relu", source.tensor = "relu12.out"} : (tensor<1x2x4x4xf32>, tensor<4x3xf32>) -> tensor<1x2x4x3xf32> loc(fused["matmul11", "relu12"])
    "func.return"(%8) : (tensor<1x2x4x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
