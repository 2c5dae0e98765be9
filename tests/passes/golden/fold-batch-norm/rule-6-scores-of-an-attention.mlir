// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3x8xf32>) -> tensor<1x2x3x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<3x8xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<8x8xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<8xf32>
    %3 = "tensorop.matmul"(%0, %1, %2) {source.tensor = "matmul3.out"} : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<3x8xf32> loc("matmul3")
    %4 = "tensorop.reshape"(%3) {shape = [1, 3, 2, 4], source.tensor = "reshape4.out"} : (tensor<3x8xf32>) -> tensor<1x3x2x4xf32> loc("reshape4")
    %5 = "tensorop.permute"(%4) {order = [0, 2, 1, 3], source.tensor = "permute5.out"} : (tensor<1x3x2x4xf32>) -> tensor<1x2x3x4xf32> loc("permute5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<8x8xf32>
    %7 = "tensorop.weight"() {key = "w7"} : () -> tensor<8xf32>
    %8 = "tensorop.matmul"(%0, %6, %7) {source.tensor = "matmul8.out"} : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<3x8xf32> loc("matmul8")
    %9 = "tensorop.reshape"(%8) {shape = [1, 3, 2, 4], source.tensor = "reshape9.out"} : (tensor<3x8xf32>) -> tensor<1x3x2x4xf32> loc("reshape9")
    %10 = "tensorop.permute"(%9) {order = [0, 2, 3, 1], source.tensor = "permute10.out"} : (tensor<1x3x2x4xf32>) -> tensor<1x2x4x3xf32> loc("permute10")
    %11 = "tensorop.matmul"(%5, %10) {source.tensor = "matmul11.out"} : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32> loc("matmul11")
    %12 = "tensorop.weight"() {key = "w12"} : () -> tensor<1xf32>
    %13 = "tensorop.div"(%11, %12) {source.tensor = "div13.out"} : (tensor<1x2x3x3xf32>, tensor<1xf32>) -> tensor<1x2x3x3xf32> loc("div13")
    "func.return"(%13) : (tensor<1x2x3x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after fold-batch-norm
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3x8xf32>) -> tensor<1x2x3x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<3x8xf32>):
    %1 = "tensorop.weight"() {key = "w1.1"} : () -> tensor<8x8xf32>
    %2 = "tensorop.weight"() {key = "w2.1"} : () -> tensor<8xf32>
    %3 = "tensorop.weight"() {key = "w6"} : () -> tensor<8x8xf32>
    %4 = "tensorop.weight"() {key = "w7"} : () -> tensor<8xf32>
    %5 = "tensorop.matmul"(%0, %3, %4) {source.tensor = "matmul8.out"} : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<3x8xf32> loc("matmul8")
    %6 = "tensorop.reshape"(%5) {shape = [1, 3, 2, 4], source.tensor = "reshape9.out"} : (tensor<3x8xf32>) -> tensor<1x3x2x4xf32> loc("reshape9")
    %7 = "tensorop.permute"(%6) {order = [0, 2, 3, 1], source.tensor = "permute10.out"} : (tensor<1x3x2x4xf32>) -> tensor<1x2x4x3xf32> loc("permute10")
    %8 = "tensorop.matmul"(%0, %1, %2) : (tensor<3x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<3x8xf32> loc("matmul3")
    %9 = "tensorop.reshape"(%8) {shape = [1, 3, 2, 4]} : (tensor<3x8xf32>) -> tensor<1x3x2x4xf32> loc("reshape4")
    %10 = "tensorop.permute"(%9) {order = [0, 2, 1, 3]} : (tensor<1x3x2x4xf32>) -> tensor<1x2x3x4xf32> loc("permute5")
    %11 = "tensorop.matmul"(%10, %7) {source.tensor = "div13.out"} : (tensor<1x2x3x4xf32>, tensor<1x2x4x3xf32>) -> tensor<1x2x3x3xf32> loc(fused["matmul11", "div13"])
    "func.return"(%11) : (tensor<1x2x3x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
