// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("relu1")
    %2 = "tensorop.cast"(%1) {dtype = "f32", source.tensor = "cast2.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("cast2")
    %3 = "tensorop.reshape"(%2) {shape = [1, 2, 4, 4], source.tensor = "reshape3.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("reshape3")
    %4 = "tensorop.slice"(%3) {ends = [1, 2, 4, 4], source.tensor = "slice4.out", starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("slice4")
    %5 = "tensorop.pad"(%4) {pads = [0, 0, 0, 0, 0, 0, 0, 0], source.tensor = "pad5.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("pad5")
    %6 = "tensorop.upsample"(%5) {scale = [1, 1], source.tensor = "upsample6.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("upsample6")
    %7 = "tensorop.tile"(%6) {reps = [1, 1, 1, 1], source.tensor = "tile7.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("tile7")
    %8 = "tensorop.concat"(%7) {axis = 1, source.tensor = "concat8.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("concat8")
    %9 = "tensorop.split"(%8) {axis = 1, sizes = [2], source.tensor = "split9.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("split9")
    "func.return"(%9) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after remove-identity
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc(fused["relu1", "cast2", "reshape3", "slice4", "pad5", "upsample6", "tile7", "concat8", "split9"])
    "func.return"(%1) : (tensor<1x2x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
