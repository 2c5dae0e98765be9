// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x7x3x4xf32>) -> tensor<2x7x3x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x7x3x4xf32>):
    %1 = "tensorop.lrn"(%0) {alpha = 0.3, k = 1.5, size = 3, source.tensor = "lrn1.out"} : (tensor<2x7x3x4xf32>) -> tensor<2x7x3x4xf32> loc("lrn1")
    "func.return"(%1) : (tensor<2x7x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x7x3x4xf32>) -> tensor<2x7x3x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x7x3x4xf32>):
    %1 = "tensorop.weight"() {key = "lrn1.neighbours"} : () -> tensor<7x7x1x1xf32> loc("lrn1")
    %2 = "tensorop.weight"() {key = "lrn1.k"} : () -> tensor<7xf32> loc("lrn1")
    %3 = "tensorop.reshape"(%0) {shape = [2, 7, 1, 12]} : (tensor<2x7x3x4xf32>) -> tensor<2x7x1x12xf32> loc("lrn1")
    %4 = "tensorop.weight"() {key = "lrn1.number"} : () -> tensor<1x1x1x1xf32> loc("lrn1")
    %5 = "tensorop.pow"(%3, %4) : (tensor<2x7x1x12xf32>, tensor<1x1x1x1xf32>) -> tensor<2x7x1x12xf32> loc("lrn1")
    %6 = "tensorop.conv"(%5, %1, %2) {codegen.macs = 0} : (tensor<2x7x1x12xf32>, tensor<7x7x1x1xf32>, tensor<7xf32>) -> tensor<2x7x1x12xf32> loc("lrn1")
    %7 = "tensorop.weight"() {key = "lrn1.number.1"} : () -> tensor<1x1x1x1xf32> loc("lrn1")
    %8 = "tensorop.pow"(%6, %7) : (tensor<2x7x1x12xf32>, tensor<1x1x1x1xf32>) -> tensor<2x7x1x12xf32> loc("lrn1")
    %9 = "tensorop.mul"(%3, %8) : (tensor<2x7x1x12xf32>, tensor<2x7x1x12xf32>) -> tensor<2x7x1x12xf32> loc("lrn1")
    %10 = "tensorop.reshape"(%9) {shape = [2, 7, 3, 4], source.tensor = "lrn1.out"} : (tensor<2x7x1x12xf32>) -> tensor<2x7x3x4xf32> loc("lrn1")
    "func.return"(%10) : (tensor<2x7x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
