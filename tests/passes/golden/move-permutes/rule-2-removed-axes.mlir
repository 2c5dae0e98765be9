// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>) -> (tensor<2x3xf32>, tensor<2x5x3xf32>, tensor<2x4x5xi32>, tensor<2x4x5x1xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x3x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<2x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x5xf32> loc("conv2")
    %3 = "tensorop.permute"(%2) {order = [0, 2, 3, 1], source.tensor = "permute3.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32> loc("permute3")
    %4 = "tensorop.reduce"(%3) {axes = [1, 2], keepdims = false, method = "mean", source.tensor = "reduce4.out"} : (tensor<2x4x5x3xf32>) -> tensor<2x3xf32> loc("reduce4")
    %5 = "tensorop.reduce"(%3) {axes = [1], keepdims = false, method = "max", source.tensor = "reduce5.out"} : (tensor<2x4x5x3xf32>) -> tensor<2x5x3xf32> loc("reduce5")
    %6 = "tensorop.arg"(%3) {axis = 3, keepdims = false, method = "max", source.tensor = "arg6.out"} : (tensor<2x4x5x3xf32>) -> tensor<2x4x5xi32> loc("arg6")
    %7 = "tensorop.reduce"(%3) {axes = [3], method = "sum", source.tensor = "reduce7.out"} : (tensor<2x4x5x3xf32>) -> tensor<2x4x5x1xf32> loc("reduce7")
    "func.return"(%4, %5, %6, %7) : (tensor<2x3xf32>, tensor<2x5x3xf32>, tensor<2x4x5xi32>, tensor<2x4x5x1xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after move-permutes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>) -> (tensor<2x3xf32>, tensor<2x5x3xf32>, tensor<2x4x5xi32>, tensor<2x4x5x1xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x3x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<2x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x5xf32> loc("conv2")
    %3 = "tensorop.reduce"(%2) {axes = [2, 3], keepdims = false, method = "mean", source.tensor = "reduce4.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x3xf32> loc("reduce4")
    %4 = "tensorop.reduce"(%2) {axes = [2], keepdims = false, method = "max", source.tensor = "reduce5.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x3x5xf32> loc("reduce5")
    %5 = "tensorop.permute"(%4) {order = [0, 2, 1]} : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32> loc("permute3")
    %6 = "tensorop.arg"(%2) {axis = 1, keepdims = false, method = "max", source.tensor = "arg6.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5xi32> loc("arg6")
    %7 = "tensorop.reduce"(%2) {axes = [1], method = "sum", source.tensor = "reduce7.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32> loc("reduce7")
    %8 = "tensorop.permute"(%7) {order = [0, 2, 3, 1]} : (tensor<2x1x4x5xf32>) -> tensor<2x4x5x1xf32> loc("permute3")
    "func.return"(%3, %5, %6, %8) : (tensor<2x3xf32>, tensor<2x5x3xf32>, tensor<2x4x5xi32>, tensor<2x4x5x1xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()
