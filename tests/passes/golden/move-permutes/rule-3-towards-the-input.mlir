// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x4x3xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x4x3xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3xf32>
    %2 = "tensorop.sub"(%0, %1) {source.tensor = "sub2.out"} : (tensor<1x4x4x3xf32>, tensor<3xf32>) -> tensor<1x4x4x3xf32> loc("sub2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<1xf32>
    %4 = "tensorop.mul"(%2, %3) {source.tensor = "mul4.out"} : (tensor<1x4x4x3xf32>, tensor<1xf32>) -> tensor<1x4x4x3xf32> loc("mul4")
    %5 = "tensorop.permute"(%4) {order = [0, 3, 1, 2], source.tensor = "permute5.out"} : (tensor<1x4x4x3xf32>) -> tensor<1x3x4x4xf32> loc("permute5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<2x3x1x1xf32>
    %7 = "tensorop.conv"(%5, %6) {source.tensor = "conv7.out"} : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv7")
    "func.return"(%7) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after move-permutes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x4x3xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x4x3xf32>):
    %1 = "tensorop.permute"(%0) {order = [0, 3, 1, 2]} : (tensor<1x4x4x3xf32>) -> tensor<1x3x4x4xf32> loc("permute5")
    %2 = "tensorop.weight"() {key = "w1.1"} : () -> tensor<1x3x1x1xf32>
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<1xf32>
    %4 = "tensorop.sub"(%1, %2) {source.tensor = "sub2.out"} : (tensor<1x3x4x4xf32>, tensor<1x3x1x1xf32>) -> tensor<1x3x4x4xf32> loc("sub2")
    %5 = "tensorop.mul"(%4, %3) {source.tensor = "permute5.out"} : (tensor<1x3x4x4xf32>, tensor<1xf32>) -> tensor<1x3x4x4xf32> loc("mul4")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<2x3x1x1xf32>
    %7 = "tensorop.conv"(%5, %6) {source.tensor = "conv7.out"} : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv7")
    "func.return"(%7) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
