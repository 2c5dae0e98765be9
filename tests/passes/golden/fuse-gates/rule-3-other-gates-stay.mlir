// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>, %1: tensor<1x2x4xf32>):
    %2 = "tensorop.sigmoid"(%0) {source.tensor = "sigmoid1.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("sigmoid1")
    %3 = "tensorop.sigmoid"(%0) {source.tensor = "sigmoid2.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("sigmoid2")
    %4 = "tensorop.mul"(%1, %3) {source.tensor = "mul3.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul3")
    %5 = "tensorop.mul"(%0, %2) {source.tensor = "mul4.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul4")
    %6 = "tensorop.weight"() {key = "w5"} : () -> tensor<1xf32>
    %7 = "tensorop.add"(%0, %6) {source.tensor = "add6.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("add6")
    %8 = "tensorop.sigmoid"(%7) {source.tensor = "sigmoid7.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("sigmoid7")
    %9 = "tensorop.mul"(%0, %8) {source.tensor = "mul8.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul8")
    "func.return"(%4, %5, %2, %9) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after fuse-gates
// unchanged
