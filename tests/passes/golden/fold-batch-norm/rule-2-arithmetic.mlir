// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x4xf32>) -> (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32> loc("relu1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<3x1x1xf32>
    %3 = "tensorop.add"(%1, %2) {source.tensor = "add3.out"} : (tensor<2x3x4x4xf32>, tensor<3x1x1xf32>) -> tensor<2x3x4x4xf32> loc("add3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<1x3x1x1xf32>
    %5 = "tensorop.sub"(%4, %1) {source.tensor = "sub5.out"} : (tensor<1x3x1x1xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32> loc("sub5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<1xf32>
    %7 = "tensorop.mul"(%1, %6) {source.tensor = "mul7.out"} : (tensor<2x3x4x4xf32>, tensor<1xf32>) -> tensor<2x3x4x4xf32> loc("mul7")
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<4xf32>
    %9 = "tensorop.div"(%1, %8) {source.tensor = "div9.out"} : (tensor<2x3x4x4xf32>, tensor<4xf32>) -> tensor<2x3x4x4xf32> loc("div9")
    "func.return"(%3, %5, %7, %9) : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after fold-batch-norm
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x4xf32>) -> (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32> loc("relu1")
    %2 = "tensorop.weight"() {key = "add3.scale"} : () -> tensor<3xf32> loc("add3")
    %3 = "tensorop.weight"() {key = "add3.shift"} : () -> tensor<3xf32> loc("add3")
    %4 = "tensorop.scale"(%1, %2, %3) {source.tensor = "add3.out"} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32> loc("add3")
    %5 = "tensorop.weight"() {key = "sub5.scale"} : () -> tensor<3xf32> loc("sub5")
    %6 = "tensorop.weight"() {key = "sub5.shift"} : () -> tensor<3xf32> loc("sub5")
    %7 = "tensorop.scale"(%1, %5, %6) {source.tensor = "sub5.out"} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32> loc("sub5")
    %8 = "tensorop.weight"() {key = "mul7.scale"} : () -> tensor<3xf32> loc("mul7")
    %9 = "tensorop.scale"(%1, %8) {source.tensor = "mul7.out"} : (tensor<2x3x4x4xf32>, tensor<3xf32>) -> tensor<2x3x4x4xf32> loc("mul7")
    %10 = "tensorop.weight"() {key = "div9.scale"} : () -> tensor<4xf32> loc("div9")
    %11 = "tensorop.scale"(%1, %10) {axis = 3, source.tensor = "div9.out"} : (tensor<2x3x4x4xf32>, tensor<4xf32>) -> tensor<2x3x4x4xf32> loc("div9")
    "func.return"(%4, %7, %9, %11) : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()
