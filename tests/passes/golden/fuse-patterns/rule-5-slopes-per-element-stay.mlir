// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x2xf32>) -> (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x2xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("relu1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<4x2x2xf32>
    %3 = "tensorop.clip"(%0) {max = 0.0, source.tensor = "clip3.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("clip3")
    %4 = "tensorop.mul"(%2, %3) {source.tensor = "mul4.out"} : (tensor<4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("mul4")
    %5 = "tensorop.add"(%1, %4) {source.tensor = "add5.out"} : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("add5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<1xf32>
    %7 = "tensorop.mul"(%0, %6) {source.tensor = "mul7.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("mul7")
    %8 = "tensorop.max"(%0, %7) {source.tensor = "max8.out"} : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("max8")
    "func.return"(%5, %8) : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-patterns
// unchanged
