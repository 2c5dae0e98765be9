// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x6x6xf32>) -> tensor<1x4x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x6x6xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x3x3x3xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x4x4xf32> loc("conv2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<4xf32>
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<4xf32>
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<4xf32>
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<4xf32>
    %7 = "tensorop.batch_norm"(%2, %3, %4, %5, %6) {epsilon = 0.001, source.tensor = "batch_norm7.out"} : (tensor<1x4x4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc("batch_norm7")
    %8 = "tensorop.reduce"(%7) {axes = [2, 3], method = "mean", source.tensor = "reduce8.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x1x1xf32> loc("reduce8")
    %9 = "tensorop.weight"() {key = "w9"} : () -> tensor<2x4x1x1xf32>
    %10 = "tensorop.weight"() {key = "w10"} : () -> tensor<2xf32>
    %11 = "tensorop.conv"(%8, %9, %10) {source.tensor = "conv11.out"} : (tensor<1x4x1x1xf32>, tensor<2x4x1x1xf32>, tensor<2xf32>) -> tensor<1x2x1x1xf32> loc("conv11")
    %12 = "tensorop.relu"(%11) {source.tensor = "relu12.out"} : (tensor<1x2x1x1xf32>) -> tensor<1x2x1x1xf32> loc("relu12")
    %13 = "tensorop.weight"() {key = "w13"} : () -> tensor<4x2x1x1xf32>
    %14 = "tensorop.conv"(%12, %13) {source.tensor = "conv14.out"} : (tensor<1x2x1x1xf32>, tensor<4x2x1x1xf32>) -> tensor<1x4x1x1xf32> loc("conv14")
    %15 = "tensorop.weight"() {key = "w15"} : () -> tensor<1xf32>
    %16 = "tensorop.mul"(%14, %15) {source.tensor = "mul16.out"} : (tensor<1x4x1x1xf32>, tensor<1xf32>) -> tensor<1x4x1x1xf32> loc("mul16")
    %17 = "tensorop.weight"() {key = "w17"} : () -> tensor<1xf32>
    %18 = "tensorop.add"(%16, %17) {source.tensor = "add18.out"} : (tensor<1x4x1x1xf32>, tensor<1xf32>) -> tensor<1x4x1x1xf32> loc("add18")
    %19 = "tensorop.clip"(%18) {max = 1.0, min = 0.0, source.tensor = "clip19.out"} : (tensor<1x4x1x1xf32>) -> tensor<1x4x1x1xf32> loc("clip19")
    %20 = "tensorop.mul"(%7, %19) {source.tensor = "mul20.out"} : (tensor<1x4x4x4xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x4x4xf32> loc("mul20")
    "func.return"(%20) : (tensor<1x4x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after canonicalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x6x6xf32>) -> tensor<1x4x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x6x6xf32>):
    %1 = "tensorop.weight"() {key = "w1.1"} : () -> tensor<4x3x3x3xf32>
    %2 = "tensorop.weight"() {key = "conv2.bias"} : () -> tensor<4xf32> loc("batch_norm7")
    %3 = "tensorop.conv"(%0, %1, %2) {source.tensor = "batch_norm7.out"} : (tensor<1x3x6x6xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc(fused["conv2", "batch_norm7"])
    %4 = "tensorop.avg_pool"(%3) {kernel = [4, 4], source.tensor = "reduce8.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x1x1xf32> loc("reduce8")
    %5 = "tensorop.weight"() {key = "w9"} : () -> tensor<2x4x1x1xf32>
    %6 = "tensorop.weight"() {key = "w10"} : () -> tensor<2xf32>
    %7 = "tensorop.conv"(%4, %5, %6) {source.tensor = "conv11.out"} : (tensor<1x4x1x1xf32>, tensor<2x4x1x1xf32>, tensor<2xf32>) -> tensor<1x2x1x1xf32> loc("conv11")
    %8 = "tensorop.relu"(%7) {source.tensor = "relu12.out"} : (tensor<1x2x1x1xf32>) -> tensor<1x2x1x1xf32> loc("relu12")
    %9 = "tensorop.weight"() {key = "w13"} : () -> tensor<4x2x1x1xf32>
    %10 = "tensorop.conv"(%8, %9) {source.tensor = "conv14.out"} : (tensor<1x2x1x1xf32>, tensor<4x2x1x1xf32>) -> tensor<1x4x1x1xf32> loc("conv14")
    %11 = "tensorop.hard_sigmoid"(%10) {alpha = 0.20000000298023224, source.tensor = "clip19.out"} : (tensor<1x4x1x1xf32>) -> tensor<1x4x1x1xf32> loc(fused["mul16", "add18", "clip19"])
    %12 = "tensorop.mul"(%3, %11) {source.tensor = "mul20.out"} : (tensor<1x4x4x4xf32>, tensor<1x4x1x1xf32>) -> tensor<1x4x4x4xf32> loc("mul20")
    "func.return"(%12) : (tensor<1x4x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
