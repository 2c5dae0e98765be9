// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x8xf32>):
    %1 = "tensorop.layer_norm"(%0) {axis = 2, source.tensor = "layer_norm1.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc("layer_norm1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<3x1xf32>
    %3 = "tensorop.mul"(%1, %2) {source.tensor = "mul3.out"} : (tensor<2x3x8xf32>, tensor<3x1xf32>) -> tensor<2x3x8xf32> loc("mul3")
    %4 = "tensorop.rms_norm"(%0) {axis = 2, source.tensor = "rms_norm4.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc("rms_norm4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<8xf32>
    %6 = "tensorop.add"(%4, %5) {source.tensor = "add6.out"} : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32> loc("add6")
    "func.return"(%3, %6) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-norms
// unchanged
