// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4xf32>, tensor<1x4x2x2xf32>) -> (tensor<1x6x2x2xf32>, tensor<1x2x4x4xf32>, tensor<1x3xf32>, tensor<1x2x3x3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x4x4xf32>, %1: tensor<1x4x4x4xf32>, %2: tensor<1x4xf32>, %3: tensor<1x4x2x2xf32>):
    %4 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> loc("relu1")
    %5 = "tensorop.weight"() {key = "w2"} : () -> tensor<4xf32>
    %6 = "tensorop.weight"() {key = "w3"} : () -> tensor<4xf32>
    %7 = "tensorop.scale"(%4, %5, %6) {source.tensor = "scale4.out"} : (tensor<1x4x4x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc("scale4")
    %8 = "tensorop.relu"(%1) {source.tensor = "relu5.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> loc("relu5")
    %9 = "tensorop.weight"() {key = "w6"} : () -> tensor<4xf32>
    %10 = "tensorop.scale"(%8, %9) {source.tensor = "scale7.out"} : (tensor<1x4x4x4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc("scale7")
    %11 = "tensorop.relu"(%2) {source.tensor = "relu8.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("relu8")
    %12 = "tensorop.weight"() {key = "w9"} : () -> tensor<4xf32>
    %13 = "tensorop.weight"() {key = "w10"} : () -> tensor<4xf32>
    %14 = "tensorop.scale"(%11, %12, %13) {source.tensor = "scale11.out"} : (tensor<1x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4xf32> loc("scale11")
    %15 = "tensorop.relu"(%3) {source.tensor = "relu12.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("relu12")
    %16 = "tensorop.weight"() {key = "w13"} : () -> tensor<4xf32>
    %17 = "tensorop.scale"(%15, %16) {source.tensor = "scale14.out"} : (tensor<1x4x2x2xf32>, tensor<4xf32>) -> tensor<1x4x2x2xf32> loc("scale14")
    %18 = "tensorop.weight"() {key = "w15"} : () -> tensor<6x2x3x3xf32>
    %19 = "tensorop.weight"() {key = "w16"} : () -> tensor<6xf32>
    %20 = "tensorop.conv"(%7, %18, %19) {group = 2, source.tensor = "conv17.out"} : (tensor<1x4x4x4xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<1x6x2x2xf32> loc("conv17")
    %21 = "tensorop.weight"() {key = "w18"} : () -> tensor<2x4x3x3xf32>
    %22 = "tensorop.conv"(%10, %21) {pads = [1, 1, 1, 1], source.tensor = "conv19.out"} : (tensor<1x4x4x4xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x4x4xf32> loc("conv19")
    %23 = "tensorop.weight"() {key = "w20"} : () -> tensor<4x3xf32>
    %24 = "tensorop.matmul"(%14, %23) {source.tensor = "matmul21.out"} : (tensor<1x4xf32>, tensor<4x3xf32>) -> tensor<1x3xf32> loc("matmul21")
    %25 = "tensorop.weight"() {key = "w22"} : () -> tensor<4x1x2x2xf32>
    %26 = "tensorop.deconv"(%17, %25) {group = 2, source.tensor = "deconv23.out"} : (tensor<1x4x2x2xf32>, tensor<4x1x2x2xf32>) -> tensor<1x2x3x3xf32> loc("deconv23")
    "func.return"(%20, %22, %24, %26) : (tensor<1x6x2x2xf32>, tensor<1x2x4x4xf32>, tensor<1x3xf32>, tensor<1x2x3x3xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c", "d"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after fold-batch-norm
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4xf32>, tensor<1x4x2x2xf32>) -> (tensor<1x6x2x2xf32>, tensor<1x2x4x4xf32>, tensor<1x3xf32>, tensor<1x2x3x3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x4x4xf32>, %1: tensor<1x4x4x4xf32>, %2: tensor<1x4xf32>, %3: tensor<1x4x2x2xf32>):
    %4 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> loc("relu1")
    %5 = "tensorop.relu"(%1) {source.tensor = "relu5.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> loc("relu5")
    %6 = "tensorop.relu"(%2) {source.tensor = "relu8.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("relu8")
    %7 = "tensorop.relu"(%3) {source.tensor = "relu12.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("relu12")
    %8 = "tensorop.weight"() {key = "w15.1"} : () -> tensor<6x2x3x3xf32>
    %9 = "tensorop.weight"() {key = "w16.1"} : () -> tensor<6xf32>
    %10 = "tensorop.conv"(%4, %8, %9) {group = 2, source.tensor = "conv17.out"} : (tensor<1x4x4x4xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<1x6x2x2xf32> loc(fused["scale4", "conv17"])
    %11 = "tensorop.weight"() {key = "w18.1"} : () -> tensor<2x4x3x3xf32>
    %12 = "tensorop.conv"(%5, %11) {pads = [1, 1, 1, 1], source.tensor = "conv19.out"} : (tensor<1x4x4x4xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x4x4xf32> loc(fused["scale7", "conv19"])
    %13 = "tensorop.weight"() {key = "w20.1"} : () -> tensor<4x3xf32>
    %14 = "tensorop.weight"() {key = "matmul21.bias"} : () -> tensor<3xf32> loc("matmul21")
    %15 = "tensorop.matmul"(%6, %13, %14) {source.tensor = "matmul21.out"} : (tensor<1x4xf32>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<1x3xf32> loc(fused["scale11", "matmul21"])
    %16 = "tensorop.weight"() {key = "w22.1"} : () -> tensor<4x1x2x2xf32>
    %17 = "tensorop.deconv"(%7, %16) {group = 2, source.tensor = "deconv23.out"} : (tensor<1x4x2x2xf32>, tensor<4x1x2x2xf32>) -> tensor<1x2x3x3xf32> loc(fused["scale14", "deconv23"])
    "func.return"(%10, %12, %15, %17) : (tensor<1x6x2x2xf32>, tensor<1x2x4x4xf32>, tensor<1x3xf32>, tensor<1x2x3x3xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c", "d"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()
