// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4x4xi8>) -> tensor<1x3x4x4xi8, {scale = 0.5}>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4x4xi8>):
    %1 = "tensorop.max_pool"(%0) {kernel = [1, 1], source.tensor = "max_pool1.out"} : (tensor<1x3x4x4xi8>) -> tensor<1x3x4x4xi8> loc("max_pool1")
    %2 = "tensorop.permute"(%1) {order = [0, 2, 3, 1], source.tensor = "permute2.out"} : (tensor<1x3x4x4xi8>) -> tensor<1x4x4x3xi8> loc("permute2")
    %3 = "tensorop.relu"(%2) {source.tensor = "relu3.out"} : (tensor<1x4x4x3xi8>) -> tensor<1x4x4x3xi8> loc("relu3")
    %4 = "tensorop.muls_shift"(%3) {multiplier = 3, rshift = 1, source.tensor = "muls_shift4.out"} : (tensor<1x4x4x3xi8>) -> tensor<1x4x4x3xi8, {scale = 0.5}> loc("muls_shift4")
    %5 = "tensorop.permute"(%4) {order = [0, 3, 1, 2], source.tensor = "permute5.out"} : (tensor<1x4x4x3xi8, {scale = 0.5}>) -> tensor<1x3x4x4xi8, {scale = 0.5}> loc("permute5")
    "func.return"(%5) : (tensor<1x3x4x4xi8, {scale = 0.5}>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after move-permutes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4x4xi8>) -> tensor<1x3x4x4xi8, {scale = 0.5}>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4x4xi8>):
    %1 = "tensorop.max_pool"(%0) {kernel = [1, 1], source.tensor = "max_pool1.out"} : (tensor<1x3x4x4xi8>) -> tensor<1x3x4x4xi8> loc("max_pool1")
    %2 = "tensorop.relu"(%1) {source.tensor = "relu3.out"} : (tensor<1x3x4x4xi8>) -> tensor<1x3x4x4xi8> loc("relu3")
    %3 = "tensorop.muls_shift"(%2) {multiplier = 3, rshift = 1, source.tensor = "muls_shift4.out"} : (tensor<1x3x4x4xi8>) -> tensor<1x3x4x4xi8, {scale = 0.5}> loc(fused["muls_shift4", "permute5"])
    "func.return"(%3) : (tensor<1x3x4x4xi8, {scale = 0.5}>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
