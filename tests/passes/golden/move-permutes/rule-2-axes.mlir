// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>) -> tensor<2x8x5x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x3x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<2x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x5xf32> loc("conv2")
    %3 = "tensorop.permute"(%2) {order = [0, 2, 3, 1], source.tensor = "permute3.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32> loc("permute3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<3xf32>
    %5 = "tensorop.scale"(%3, %4) {axis = 3, source.tensor = "scale5.out"} : (tensor<2x4x5x3xf32>, tensor<3xf32>) -> tensor<2x4x5x3xf32> loc("scale5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<3xf32>
    %7 = "tensorop.prelu"(%5, %6) {axis = 3, source.tensor = "prelu7.out"} : (tensor<2x4x5x3xf32>, tensor<3xf32>) -> tensor<2x4x5x3xf32> loc("prelu7")
    %8 = "tensorop.softmax"(%7) {source.tensor = "softmax8.out"} : (tensor<2x4x5x3xf32>) -> tensor<2x4x5x3xf32> loc("softmax8")
    %9 = "tensorop.slice"(%8) {ends = [2, 4, 5, 3], source.tensor = "slice9.out", starts = [0, 1, 0, 0], steps = [1, 1, 2, 1]} : (tensor<2x4x5x3xf32>) -> tensor<2x3x3x3xf32> loc("slice9")
    %10 = "tensorop.pad"(%9) {pads = [0, 0, 1, 0, 0, 2, 0, 0], source.tensor = "pad10.out"} : (tensor<2x3x3x3xf32>) -> tensor<2x4x5x3xf32> loc("pad10")
    %11 = "tensorop.tile"(%10) {reps = [1, 2, 1, 1], source.tensor = "tile11.out"} : (tensor<2x4x5x3xf32>) -> tensor<2x8x5x3xf32> loc("tile11")
    "func.return"(%11) : (tensor<2x8x5x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after move-permutes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4x5xf32>) -> tensor<2x8x5x3xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x3x1x1xf32>
    %2 = "tensorop.conv"(%0, %1) {source.tensor = "conv2.out"} : (tensor<2x3x4x5xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x5xf32> loc("conv2")
    %3 = "tensorop.weight"() {key = "w4"} : () -> tensor<3xf32>
    %4 = "tensorop.scale"(%2, %3) {source.tensor = "scale5.out"} : (tensor<2x3x4x5xf32>, tensor<3xf32>) -> tensor<2x3x4x5xf32> loc("scale5")
    %5 = "tensorop.weight"() {key = "w6"} : () -> tensor<3xf32>
    %6 = "tensorop.prelu"(%4, %5) {source.tensor = "prelu7.out"} : (tensor<2x3x4x5xf32>, tensor<3xf32>) -> tensor<2x3x4x5xf32> loc("prelu7")
    %7 = "tensorop.softmax"(%6) {axis = 1, source.tensor = "softmax8.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32> loc("softmax8")
    %8 = "tensorop.slice"(%7) {ends = [2, 3, 4, 5], source.tensor = "slice9.out", starts = [0, 0, 1, 0], steps = [1, 1, 1, 2]} : (tensor<2x3x4x5xf32>) -> tensor<2x3x3x3xf32> loc("slice9")
    %9 = "tensorop.pad"(%8) {pads = [0, 0, 0, 0, 1, 0, 0, 2], source.tensor = "pad10.out"} : (tensor<2x3x3x3xf32>) -> tensor<2x3x4x5xf32> loc("pad10")
    %10 = "tensorop.tile"(%9) {reps = [1, 1, 2, 1], source.tensor = "tile11.out"} : (tensor<2x3x4x5xf32>) -> tensor<2x3x8x5xf32> loc("tile11")
    %11 = "tensorop.permute"(%10) {order = [0, 2, 3, 1]} : (tensor<2x3x8x5xf32>) -> tensor<2x8x5x3xf32> loc("permute3")
    "func.return"(%11) : (tensor<2x8x5x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
