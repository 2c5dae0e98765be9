// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<1x3x4x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x4xf32>, %1: tensor<1x1x4x4xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x1x1xf32>
    %3 = "tensorop.add"(%1, %2) {source.tensor = "add2.out"} : (tensor<1x1x4x4xf32>, tensor<3x1x1xf32>) -> tensor<1x3x4x4xf32> loc("add2")
    %4 = "tensorop.weight"() {key = "w3"} : () -> tensor<3x4x1xf32>
    %5 = "tensorop.add"(%0, %4) {source.tensor = "add4.out"} : (tensor<2x3x4x4xf32>, tensor<3x4x1xf32>) -> tensor<2x3x4x4xf32> loc("add4")
    %6 = "tensorop.weight"() {key = "w5"} : () -> tensor<2x1x1x1xf32>
    %7 = "tensorop.add"(%0, %6) {source.tensor = "add6.out"} : (tensor<2x3x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<2x3x4x4xf32> loc("add6")
    %8 = "tensorop.weight"() {key = "w7"} : () -> tensor<1xf32>
    %9 = "tensorop.div"(%8, %0) {source.tensor = "div8.out"} : (tensor<1xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32> loc("div8")
    "func.return"(%5, %7, %9, %3) : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<1x3x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data", "y"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after fold-batch-norm
// unchanged
