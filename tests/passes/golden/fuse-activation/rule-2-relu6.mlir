// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x2x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv2")
    %3 = "tensorop.clip"(%2) {max = 6.0, min = 0.0, source.tensor = "clip3.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("clip3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<1xf32>
    %5 = "tensorop.add"(%3, %4) {source.tensor = "add5.out"} : (tensor<1x2x4x4xf32>, tensor<1xf32>) -> tensor<1x2x4x4xf32> loc("add5")
    %6 = "tensorop.clip"(%5) {max = 6.0, min = 0.0, source.tensor = "clip6.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("clip6")
    "func.return"(%6) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after fuse-activation
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x2x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {activation = "relu6", source.tensor = "clip3.out"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc(fused["conv2", "clip3"])
    %3 = "tensorop.weight"() {key = "w4"} : () -> tensor<1xf32>
    %4 = "tensorop.add"(%2, %3) {activation = "relu6", source.tensor = "clip6.out"} : (tensor<1x2x4x4xf32>, tensor<1xf32>) -> tensor<1x2x4x4xf32> loc(fused["add5", "clip6"])
    "func.return"(%4) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
