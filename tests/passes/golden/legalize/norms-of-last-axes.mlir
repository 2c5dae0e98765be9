// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x16xf32>) -> (tensor<2x3x16xf32>, tensor<2x3x16xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x16xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<16xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<16xf32>
    %3 = "tensorop.layer_norm"(%0, %1, %2) {axis = 2, source.tensor = "layer_norm3.out"} : (tensor<2x3x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x3x16xf32> loc("layer_norm3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<3x16xf32>
    %5 = "tensorop.rms_norm"(%0, %4) {axis = 1, source.tensor = "rms_norm5.out"} : (tensor<2x3x16xf32>, tensor<3x16xf32>) -> tensor<2x3x16xf32> loc("rms_norm5")
    "func.return"(%3, %5) : (tensor<2x3x16xf32>, tensor<2x3x16xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x16xf32>) -> (tensor<2x3x16xf32>, tensor<2x3x16xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x16xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<16xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<16xf32>
    %3 = "tensorop.reshape"(%0) {shape = [1, 6, 4, 4]} : (tensor<2x3x16xf32>) -> tensor<1x6x4x4xf32> loc("layer_norm3")
    %4 = "tensorop.avg_pool"(%3) {kernel = [4, 4]} : (tensor<1x6x4x4xf32>) -> tensor<1x6x1x1xf32> loc("layer_norm3")
    %5 = "tensorop.reshape"(%4) {shape = [2, 3, 1]} : (tensor<1x6x1x1xf32>) -> tensor<2x3x1xf32> loc("layer_norm3")
    %6 = "tensorop.sub"(%0, %5) : (tensor<2x3x16xf32>, tensor<2x3x1xf32>) -> tensor<2x3x16xf32> loc("layer_norm3")
    %7 = "tensorop.weight"() {key = "layer_norm3.number"} : () -> tensor<1x1x1xf32> loc("layer_norm3")
    %8 = "tensorop.pow"(%6, %7) : (tensor<2x3x16xf32>, tensor<1x1x1xf32>) -> tensor<2x3x16xf32> loc("layer_norm3")
    %9 = "tensorop.reshape"(%8) {shape = [1, 6, 4, 4]} : (tensor<2x3x16xf32>) -> tensor<1x6x4x4xf32> loc("layer_norm3")
    %10 = "tensorop.avg_pool"(%9) {kernel = [4, 4]} : (tensor<1x6x4x4xf32>) -> tensor<1x6x1x1xf32> loc("layer_norm3")
    %11 = "tensorop.reshape"(%10) {shape = [2, 3, 1]} : (tensor<1x6x1x1xf32>) -> tensor<2x3x1xf32> loc("layer_norm3")
    %12 = "tensorop.weight"() {key = "layer_norm3.number.1"} : () -> tensor<1x1x1xf32> loc("layer_norm3")
    %13 = "tensorop.add"(%11, %12) : (tensor<2x3x1xf32>, tensor<1x1x1xf32>) -> tensor<2x3x1xf32> loc("layer_norm3")
    %14 = "tensorop.weight"() {key = "layer_norm3.number.2"} : () -> tensor<1x1x1xf32> loc("layer_norm3")
    %15 = "tensorop.pow"(%13, %14) : (tensor<2x3x1xf32>, tensor<1x1x1xf32>) -> tensor<2x3x1xf32> loc("layer_norm3")
    %16 = "tensorop.reshape"(%6) {shape = [1, 6, 1, 16]} : (tensor<2x3x16xf32>) -> tensor<1x6x1x16xf32> loc("layer_norm3")
    %17 = "tensorop.reshape"(%15) {shape = [1, 6, 1, 1]} : (tensor<2x3x1xf32>) -> tensor<1x6x1x1xf32> loc("layer_norm3")
    %18 = "tensorop.mul"(%16, %17) : (tensor<1x6x1x16xf32>, tensor<1x6x1x1xf32>) -> tensor<1x6x1x16xf32> loc("layer_norm3")
    %19 = "tensorop.reshape"(%18) {shape = [2, 3, 16]} : (tensor<1x6x1x16xf32>) -> tensor<2x3x16xf32> loc("layer_norm3")
    %20 = "tensorop.mul"(%19, %1) : (tensor<2x3x16xf32>, tensor<16xf32>) -> tensor<2x3x16xf32> loc("layer_norm3")
    %21 = "tensorop.add"(%20, %2) {source.tensor = "layer_norm3.out"} : (tensor<2x3x16xf32>, tensor<16xf32>) -> tensor<2x3x16xf32> loc("layer_norm3")
    %22 = "tensorop.weight"() {key = "rms_norm5.number"} : () -> tensor<1x1x1xf32> loc("rms_norm5")
    %23 = "tensorop.pow"(%0, %22) : (tensor<2x3x16xf32>, tensor<1x1x1xf32>) -> tensor<2x3x16xf32> loc("rms_norm5")
    %24 = "tensorop.reshape"(%23) {shape = [1, 2, 6, 8]} : (tensor<2x3x16xf32>) -> tensor<1x2x6x8xf32> loc("rms_norm5")
    %25 = "tensorop.avg_pool"(%24) {kernel = [6, 8]} : (tensor<1x2x6x8xf32>) -> tensor<1x2x1x1xf32> loc("rms_norm5")
    %26 = "tensorop.reshape"(%25) {shape = [2, 1, 1]} : (tensor<1x2x1x1xf32>) -> tensor<2x1x1xf32> loc("rms_norm5")
    %27 = "tensorop.weight"() {key = "rms_norm5.number.1"} : () -> tensor<1x1x1xf32> loc("rms_norm5")
    %28 = "tensorop.add"(%26, %27) : (tensor<2x1x1xf32>, tensor<1x1x1xf32>) -> tensor<2x1x1xf32> loc("rms_norm5")
    %29 = "tensorop.weight"() {key = "rms_norm5.number.2"} : () -> tensor<1x1x1xf32> loc("rms_norm5")
    %30 = "tensorop.pow"(%28, %29) : (tensor<2x1x1xf32>, tensor<1x1x1xf32>) -> tensor<2x1x1xf32> loc("rms_norm5")
    %31 = "tensorop.reshape"(%0) {shape = [1, 2, 1, 48]} : (tensor<2x3x16xf32>) -> tensor<1x2x1x48xf32> loc("rms_norm5")
    %32 = "tensorop.reshape"(%30) {shape = [1, 2, 1, 1]} : (tensor<2x1x1xf32>) -> tensor<1x2x1x1xf32> loc("rms_norm5")
    %33 = "tensorop.mul"(%31, %32) : (tensor<1x2x1x48xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x1x48xf32> loc("rms_norm5")
    %34 = "tensorop.reshape"(%33) {shape = [2, 3, 16]} : (tensor<1x2x1x48xf32>) -> tensor<2x3x16xf32> loc("rms_norm5")
    %35 = "tensorop.weight"() {key = "rms_norm5.spread"} : () -> tensor<2x3x16xf32> loc("rms_norm5")
    %36 = "tensorop.mul"(%34, %35) {source.tensor = "rms_norm5.out"} : (tensor<2x3x16xf32>, tensor<2x3x16xf32>) -> tensor<2x3x16xf32> loc("rms_norm5")
    "func.return"(%21, %36) : (tensor<2x3x16xf32>, tensor<2x3x16xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
