// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x8x1xf32>, tensor<2x5x2xf32>) -> (tensor<2x8x2xf32>, tensor<2x5x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x8x1xf32>, %1: tensor<2x5x2xf32>):
    %2 = "tensorop.dft"(%0) {axis = 1, source.tensor = "dft1.out"} : (tensor<2x8x1xf32>) -> tensor<2x8x2xf32> loc("dft1")
    %3 = "tensorop.dft"(%1) {axis = 1, inverse = true, source.tensor = "dft2.out"} : (tensor<2x5x2xf32>) -> tensor<2x5x2xf32> loc("dft2")
    "func.return"(%2, %3) : (tensor<2x8x2xf32>, tensor<2x5x2xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x8x1xf32>, tensor<2x5x2xf32>) -> (tensor<2x8x2xf32>, tensor<2x5x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x8x1xf32>, %1: tensor<2x5x2xf32>):
    %2 = "tensorop.reshape"(%0) {shape = [2, 8]} : (tensor<2x8x1xf32>) -> tensor<2x8xf32> loc("dft1")
    %3 = "tensorop.weight"() {key = "dft1.waves"} : () -> tensor<8x16xf32> loc("dft1")
    %4 = "tensorop.matmul"(%2, %3) {codegen.macs = 0} : (tensor<2x8xf32>, tensor<8x16xf32>) -> tensor<2x16xf32> loc("dft1")
    %5 = "tensorop.reshape"(%4) {shape = [2, 8, 2], source.tensor = "dft1.out"} : (tensor<2x16xf32>) -> tensor<2x8x2xf32> loc("dft1")
    %6 = "tensorop.reshape"(%1) {shape = [2, 10]} : (tensor<2x5x2xf32>) -> tensor<2x10xf32> loc("dft2")
    %7 = "tensorop.weight"() {key = "dft2.waves"} : () -> tensor<10x10xf32> loc("dft2")
    %8 = "tensorop.matmul"(%6, %7) {codegen.macs = 0} : (tensor<2x10xf32>, tensor<10x10xf32>) -> tensor<2x10xf32> loc("dft2")
    %9 = "tensorop.reshape"(%8) {shape = [2, 5, 2], source.tensor = "dft2.out"} : (tensor<2x10xf32>) -> tensor<2x5x2xf32> loc("dft2")
    "func.return"(%5, %9) : (tensor<2x8x2xf32>, tensor<2x5x2xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
