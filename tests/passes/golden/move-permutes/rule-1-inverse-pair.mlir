// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x2x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32> loc("conv2")
    %3 = "tensorop.permute"(%2) {order = [0, 2, 3, 1], source.tensor = "permute3.out"} : (tensor<1x3x4x4xf32>) -> tensor<1x4x4x3xf32> loc("permute3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<3xf32>
    %5 = "tensorop.add"(%3, %4) {source.tensor = "add5.out"} : (tensor<1x4x4x3xf32>, tensor<3xf32>) -> tensor<1x4x4x3xf32> loc("add5")
    %6 = "tensorop.relu"(%5) {source.tensor = "relu6.out"} : (tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32> loc("relu6")
    %7 = "tensorop.permute"(%6) {order = [0, 3, 1, 2], source.tensor = "permute7.out"} : (tensor<1x4x4x3xf32>) -> tensor<1x3x4x4xf32> loc("permute7")
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<2x3x1x1xf32>
    %9 = "tensorop.conv"(%7, %8) {source.tensor = "conv9.out"} : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv9")
    "func.return"(%9) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after move-permutes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x2x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32> loc("conv2")
    %3 = "tensorop.weight"() {key = "w4.1"} : () -> tensor<1x3x1x1xf32>
    %4 = "tensorop.add"(%2, %3) {source.tensor = "add5.out"} : (tensor<1x3x4x4xf32>, tensor<1x3x1x1xf32>) -> tensor<1x3x4x4xf32> loc("add5")
    %5 = "tensorop.relu"(%4) {source.tensor = "relu6.out"} : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32> loc(fused["relu6", "permute7"])
    %6 = "tensorop.weight"() {key = "w8"} : () -> tensor<2x3x1x1xf32>
    %7 = "tensorop.conv"(%5, %6) {source.tensor = "conv9.out"} : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv9")
    "func.return"(%7) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
