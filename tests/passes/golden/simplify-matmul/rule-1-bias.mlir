// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4xf32>) -> (tensor<2x3xf32>, tensor<2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1x3xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<4x3xf32>
    %3 = "tensorop.matmul"(%0, %2) {source.tensor = "matmul3.out"} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32> loc("matmul3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<3xf32>
    %5 = "tensorop.add"(%3, %4) {source.tensor = "add5.out"} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32> loc("add5")
    %6 = "tensorop.add"(%1, %5) {source.tensor = "add6.out"} : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> loc("add6")
    %7 = "tensorop.weight"() {key = "w7"} : () -> tensor<1xf32>
    %8 = "tensorop.add"(%6, %7) {source.tensor = "add8.out"} : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32> loc("add8")
    %9 = "tensorop.weight"() {key = "w9"} : () -> tensor<4x2xf32>
    %10 = "tensorop.matmul"(%0, %9) {source.tensor = "matmul10.out"} : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32> loc("matmul10")
    %11 = "tensorop.weight"() {key = "w11"} : () -> tensor<2x1xf32>
    %12 = "tensorop.add"(%10, %11) {source.tensor = "add12.out"} : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32> loc("add12")
    "func.return"(%8, %12) : (tensor<2x3xf32>, tensor<2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after simplify-matmul
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4xf32>) -> (tensor<2x3xf32>, tensor<2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x4xf32>):
    %1 = "tensorop.weight"() {key = "w2"} : () -> tensor<4x3xf32>
    %2 = "tensorop.weight"() {key = "w7.1"} : () -> tensor<3xf32>
    %3 = "tensorop.matmul"(%0, %1, %2) {source.tensor = "add8.out"} : (tensor<2x4xf32>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<2x3xf32> loc(fused["matmul3", "add5", "add6", "add8"])
    %4 = "tensorop.weight"() {key = "w9"} : () -> tensor<4x2xf32>
    %5 = "tensorop.matmul"(%0, %4) {source.tensor = "matmul10.out"} : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32> loc("matmul10")
    %6 = "tensorop.weight"() {key = "w11"} : () -> tensor<2x1xf32>
    %7 = "tensorop.add"(%5, %6) {source.tensor = "add12.out"} : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32> loc("add12")
    "func.return"(%3, %7) : (tensor<2x3xf32>, tensor<2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
