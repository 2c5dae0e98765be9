// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3x8xf32>, tensor<2x5x8xf32>, tensor<2x3x8xf32>) -> (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>, tensor<2x3x5xf32>, tensor<1x2x3x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<3x8xf32>, %1: tensor<2x5x8xf32>, %2: tensor<2x3x8xf32>):
    %3 = "tensorop.weight"() {key = "w1"} : () -> tensor<8x8xf32>
    %4 = "tensorop.weight"() {key = "w2"} : () -> tensor<8xf32>
    %5 = "tensorop.matmul"(%0, %3, %4) {source.tensor = "matmul3.out"} : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<3x8xf32> loc("matmul3")
    %6 = "tensorop.reshape"(%5) {shape = [1, 3, 2, 4], source.tensor = "reshape4.out"} : (tensor<3x8xf32>) -> tensor<1x3x2x4xf32> loc("reshape4")
    %7 = "tensorop.permute"(%6) {order = [0, 2, 1, 3], source.tensor = "permute5.out"} : (tensor<1x3x2x4xf32>) -> tensor<1x2x3x4xf32> loc("permute5")
    %8 = "tensorop.weight"() {key = "w6"} : () -> tensor<8x8xf32>
    %9 = "tensorop.weight"() {key = "w7"} : () -> tensor<8xf32>
    %10 = "tensorop.matmul"(%0, %8, %9) {source.tensor = "matmul8.out"} : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<3x8xf32> loc("matmul8")
    %11 = "tensorop.reshape"(%10) {shape = [1, 3, 2, 4], source.tensor = "reshape9.out"} : (tensor<3x8xf32>) -> tensor<1x3x2x4xf32> loc("reshape9")
    %12 = "tensorop.permute"(%11) {order = [0, 2, 3, 1], source.tensor = "permute10.out"} : (tensor<1x3x2x4xf32>) -> tensor<1x2x4x3xf32> loc("permute10")
    %13 = "tensorop.matmul"(%7, %12) {source.tensor = "matmul11.out"} : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32> loc("matmul11")
    %14 = "tensorop.weight"() {key = "w12"} : () -> tensor<2xf32>
    %15 = "tensorop.scale"(%13, %14) {source.tensor = "scale13.out"} : (tensor<1x2x3x3xf32>, tensor<2xf32>) -> tensor<1x2x3x3xf32> loc("scale13")
    %16 = "tensorop.weight"() {key = "w14"} : () -> tensor<8x8xf32>
    %17 = "tensorop.weight"() {key = "w15"} : () -> tensor<8xf32>
    %18 = "tensorop.matmul"(%0, %16, %17) {source.tensor = "matmul16.out"} : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<3x8xf32> loc("matmul16")
    %19 = "tensorop.reshape"(%18) {shape = [1, 3, 2, 4], source.tensor = "reshape17.out"} : (tensor<3x8xf32>) -> tensor<1x3x2x4xf32> loc("reshape17")
    %20 = "tensorop.permute"(%19) {order = [0, 2, 1, 3], source.tensor = "permute18.out"} : (tensor<1x3x2x4xf32>) -> tensor<1x2x3x4xf32> loc("permute18")
    %21 = "tensorop.matmul"(%20, %12) {source.tensor = "matmul19.out"} : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32> loc("matmul19")
    %22 = "tensorop.weight"() {key = "w20"} : () -> tensor<2xf32>
    %23 = "tensorop.weight"() {key = "w21"} : () -> tensor<2xf32>
    %24 = "tensorop.scale"(%21, %22, %23) {source.tensor = "scale22.out"} : (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x3x3xf32> loc("scale22")
    %25 = "tensorop.permute"(%1) {order = [0, 2, 1], source.tensor = "permute23.out"} : (tensor<2x5x8xf32>) -> tensor<2x8x5xf32> loc("permute23")
    %26 = "tensorop.matmul"(%2, %25) {source.tensor = "matmul24.out"} : (tensor<2x3x8xf32>, tensor<2x8x5xf32>) -> tensor<2x3x5xf32> loc("matmul24")
    %27 = "tensorop.weight"() {key = "w25"} : () -> tensor<3xf32>
    %28 = "tensorop.scale"(%26, %27) {source.tensor = "scale26.out"} : (tensor<2x3x5xf32>, tensor<3xf32>) -> tensor<2x3x5xf32> loc("scale26")
    %29 = "tensorop.softmax"(%7) {axis = 3, source.tensor = "softmax27.out"} : (tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> loc("softmax27")
    "func.return"(%15, %24, %28, %29) : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>, tensor<2x3x5xf32>, tensor<1x2x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data", "c", "b"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after fold-batch-norm
// unchanged
