// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>) -> (tensor<2x2x4x5xf32>, tensor<2x4x4x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x3x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<2x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x5xf32> loc("conv2")
    %3 = "tensorop.permute"(%2) {order = [0, 2, 3, 1], source.tensor = "permute3.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32> loc("permute3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<3x3x1x1xf32>
    %5 = "tensorop.conv"(%0, %4) {source.tensor = "conv5.out"} : (tensor<2x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x5xf32> loc("conv5")
    %6 = "tensorop.permute"(%5) {order = [0, 2, 3, 1], source.tensor = "permute6.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32> loc("permute6")
    %7 = "tensorop.mul"(%3, %6) {source.tensor = "mul7.out"} : (tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>) -> tensor<2x4x5x3xf32> loc("mul7")
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<4x1x3xf32>
    %9 = "tensorop.weight"() {key = "w9"} : () -> tensor<1xf32>
    %10 = "tensorop.max"(%3, %9) {source.tensor = "max10.out"} : (tensor<2x4x5x3xf32>, tensor<1xf32>) -> tensor<2x4x5x3xf32> loc("max10")
    %11 = "tensorop.sub"(%8, %10) {source.tensor = "sub11.out"} : (tensor<4x1x3xf32>, tensor<2x4x5x3xf32>) -> tensor<2x4x5x3xf32> loc("sub11")
    %12 = "tensorop.concat"(%7, %11) {axis = 3, source.tensor = "concat12.out"} : (tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>) -> tensor<2x4x5x6xf32> loc("concat12")
    %13, %14 = "tensorop.split"(%12) {axis = 3, sizes = [2, 4]} : (tensor<2x4x5x6xf32>) -> (tensor<2x4x5x2xf32>, tensor<2x4x5x4xf32>) loc("split13")
    %15 = "tensorop.permute"(%13) {order = [0, 3, 1, 2], source.tensor = "permute14.out"} : (tensor<2x4x5x2xf32>) -> tensor<2x2x4x5xf32> loc("permute14")
    %16 = "tensorop.permute"(%14) {order = [0, 3, 1, 2], source.tensor = "permute15.out"} : (tensor<2x4x5x4xf32>) -> tensor<2x4x4x5xf32> loc("permute15")
    "func.return"(%15, %16) : (tensor<2x2x4x5xf32>, tensor<2x4x4x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after move-permutes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>) -> (tensor<2x2x4x5xf32>, tensor<2x4x4x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x3x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<2x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x5xf32> loc("conv2")
    %3 = "tensorop.weight"() {key = "w4"} : () -> tensor<3x3x1x1xf32>
    %4 = "tensorop.conv"(%0, %3) {source.tensor = "conv5.out"} : (tensor<2x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x5xf32> loc("conv5")
    %5 = "tensorop.mul"(%2, %4) {source.tensor = "mul7.out"} : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32> loc("mul7")
    %6 = "tensorop.weight"() {key = "w9"} : () -> tensor<1xf32>
    %7 = "tensorop.max"(%2, %6) {source.tensor = "max10.out"} : (tensor<2x3x4x5xf32>, tensor<1xf32>) -> tensor<2x3x4x5xf32> loc("max10")
    %8 = "tensorop.weight"() {key = "w8.1"} : () -> tensor<1x3x4x1xf32>
    %9 = "tensorop.sub"(%8, %7) {source.tensor = "sub11.out"} : (tensor<1x3x4x1xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32> loc("sub11")
    %10 = "tensorop.concat"(%5, %9) {axis = 1, source.tensor = "concat12.out"} : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>) -> tensor<2x6x4x5xf32> loc("concat12")
    %11, %12 = "tensorop.split"(%10) {axis = 1, sizes = [2, 4]} : (tensor<2x6x4x5xf32>) -> (tensor<2x2x4x5xf32>, tensor<2x4x4x5xf32>) loc(fused["split13", "permute14", "permute15"])
    "func.return"(%11, %12) : (tensor<2x2x4x5xf32>, tensor<2x4x4x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
