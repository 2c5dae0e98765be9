// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4x4xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4x4xf32>):
    %1 = "tensorop.permute"(%0) {order = [0, 2, 3, 1], source.tensor = "permute1.out"} : (tensor<1x3x4x4xf32>) -> tensor<1x4x4x3xf32> loc("permute1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<3xf32>
    %3 = "tensorop.add"(%1, %2) {source.tensor = "add3.out"} : (tensor<1x4x4x3xf32>, tensor<3xf32>) -> tensor<1x4x4x3xf32> loc("add3")
    %4 = "tensorop.permute"(%3) {order = [0, 3, 1, 2], source.tensor = "permute4.out"} : (tensor<1x4x4x3xf32>) -> tensor<1x3x4x4xf32> loc("permute4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<2x3x1x1xf32>
    %6 = "tensorop.conv"(%4, %5) {source.tensor = "conv6.out"} : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv6")
    "func.return"(%6) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after move-permutes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4x4xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4x4xf32>):
    %1 = "tensorop.weight"() {key = "w2.1"} : () -> tensor<1x3x1x1xf32>
    %2 = "tensorop.add"(%0, %1) {source.tensor = "permute4.out"} : (tensor<1x3x4x4xf32>, tensor<1x3x1x1xf32>) -> tensor<1x3x4x4xf32> loc("add3")
    %3 = "tensorop.weight"() {key = "w5"} : () -> tensor<2x3x1x1xf32>
    %4 = "tensorop.conv"(%2, %3) {source.tensor = "conv6.out"} : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x4x4xf32> loc("conv6")
    "func.return"(%4) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
