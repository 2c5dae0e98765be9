// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x8xf32>):
    %1 = "tensorop.layer_norm"(%0) {axis = 2, source.tensor = "layer_norm1.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc("layer_norm1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<8xf32>
    %3 = "tensorop.mul"(%1, %2) {source.tensor = "mul3.out"} : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32> loc("mul3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<1x1x8xf32>
    %5 = "tensorop.add"(%3, %4) {source.tensor = "add5.out"} : (tensor<2x3x8xf32>, tensor<1x1x8xf32>) -> tensor<2x3x8xf32> loc("add5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<3x8xf32>
    %7 = "tensorop.layer_norm"(%0, %6) {axis = 1, source.tensor = "layer_norm7.out"} : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32> loc("layer_norm7")
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<3xf32>
    %9 = "tensorop.weight"() {key = "w9"} : () -> tensor<3xf32>
    %10 = "tensorop.scale"(%7, %8, %9) {source.tensor = "scale10.out"} : (tensor<2x3x8xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x8xf32> loc("scale10")
    %11 = "tensorop.layer_norm"(%0) {axis = 1, source.tensor = "layer_norm11.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc("layer_norm11")
    %12 = "tensorop.weight"() {key = "w12"} : () -> tensor<1xf32>
    %13 = "tensorop.add"(%11, %12) {source.tensor = "add13.out"} : (tensor<2x3x8xf32>, tensor<1xf32>) -> tensor<2x3x8xf32> loc("add13")
    %14 = "tensorop.weight"() {key = "w14"} : () -> tensor<8xf32>
    %15 = "tensorop.rms_norm"(%0, %14) {axis = 2, source.tensor = "rms_norm15.out"} : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32> loc("rms_norm15")
    %16 = "tensorop.weight"() {key = "w16"} : () -> tensor<1xf32>
    %17 = "tensorop.mul"(%15, %16) {source.tensor = "mul17.out"} : (tensor<2x3x8xf32>, tensor<1xf32>) -> tensor<2x3x8xf32> loc("mul17")
    "func.return"(%5, %10, %13, %17) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after fuse-norms
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x8xf32>):
    %1 = "tensorop.weight"() {key = "add5.gamma"} : () -> tensor<8xf32> loc("add5")
    %2 = "tensorop.weight"() {key = "add5.beta"} : () -> tensor<8xf32> loc("add5")
    %3 = "tensorop.layer_norm"(%0, %1, %2) {axis = 2, source.tensor = "add5.out"} : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32> loc(fused["layer_norm1", "mul3", "add5"])
    %4 = "tensorop.weight"() {key = "scale10.gamma"} : () -> tensor<3x8xf32> loc("scale10")
    %5 = "tensorop.weight"() {key = "scale10.beta"} : () -> tensor<3x8xf32> loc("scale10")
    %6 = "tensorop.layer_norm"(%0, %4, %5) {axis = 1, source.tensor = "scale10.out"} : (tensor<2x3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32> loc(fused["layer_norm7", "scale10"])
    %7 = "tensorop.weight"() {key = "add13.gamma"} : () -> tensor<3x8xf32> loc("add13")
    %8 = "tensorop.weight"() {key = "add13.beta"} : () -> tensor<3x8xf32> loc("add13")
    %9 = "tensorop.layer_norm"(%0, %7, %8) {axis = 1, source.tensor = "add13.out"} : (tensor<2x3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32> loc(fused["layer_norm11", "add13"])
    %10 = "tensorop.weight"() {key = "mul17.gamma"} : () -> tensor<8xf32> loc("mul17")
    %11 = "tensorop.rms_norm"(%0, %10) {axis = 2, source.tensor = "mul17.out"} : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32> loc(fused["rms_norm15", "mul17"])
    "func.return"(%3, %6, %9, %11) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()
