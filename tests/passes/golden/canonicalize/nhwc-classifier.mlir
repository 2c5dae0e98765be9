// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x8x8x3xf32>) -> tensor<1x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x8x8x3xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.sub"(%0, %1) {source.tensor = "sub2.out"} : (tensor<1x8x8x3xf32>, tensor<1xf32>) -> tensor<1x8x8x3xf32> loc("sub2")
    %3 = "tensorop.permute"(%2) {order = [0, 3, 1, 2], source.tensor = "permute3.out"} : (tensor<1x8x8x3xf32>) -> tensor<1x3x8x8xf32> loc("permute3")
    %4 = "tensorop.pad"(%3) {pads = [0, 0, 0, 0, 0, 1, 0, 1], source.tensor = "pad4.out"} : (tensor<1x3x8x8xf32>) -> tensor<1x3x9x9xf32> loc("pad4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<4x3x3x3xf32>
    %6 = "tensorop.conv"(%4, %5) {source.tensor = "conv6.out", strides = [2, 2]} : (tensor<1x3x9x9xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x4x4xf32> loc("conv6")
    %7 = "tensorop.permute"(%6) {order = [0, 2, 3, 1], source.tensor = "permute7.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> loc("permute7")
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<4xf32>
    %9 = "tensorop.mul"(%7, %8) {source.tensor = "mul9.out"} : (tensor<1x4x4x4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc("mul9")
    %10 = "tensorop.weight"() {key = "w10"} : () -> tensor<4xf32>
    %11 = "tensorop.add"(%9, %10) {source.tensor = "add11.out"} : (tensor<1x4x4x4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc("add11")
    %12 = "tensorop.weight"() {key = "w12"} : () -> tensor<1xf32>
    %13 = "tensorop.add"(%11, %12) {source.tensor = "add13.out"} : (tensor<1x4x4x4xf32>, tensor<1xf32>) -> tensor<1x4x4x4xf32> loc("add13")
    %14 = "tensorop.clip"(%13) {max = 6.0, min = 0.0, source.tensor = "clip14.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> loc("clip14")
    %15 = "tensorop.mul"(%11, %14) {source.tensor = "mul15.out"} : (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> loc("mul15")
    %16 = "tensorop.weight"() {key = "w16"} : () -> tensor<1xf32>
    %17 = "tensorop.div"(%15, %16) {source.tensor = "div17.out"} : (tensor<1x4x4x4xf32>, tensor<1xf32>) -> tensor<1x4x4x4xf32> loc("div17")
    %18 = "tensorop.permute"(%17) {order = [0, 3, 1, 2], source.tensor = "permute18.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> loc("permute18")
    %19 = "tensorop.weight"() {key = "w19"} : () -> tensor<4x1x3x3xf32>
    %20 = "tensorop.conv"(%18, %19) {group = 4, pads = [1, 1, 1, 1], source.tensor = "conv20.out"} : (tensor<1x4x4x4xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x4x4xf32> loc("conv20")
    %21 = "tensorop.permute"(%20) {order = [0, 2, 3, 1], source.tensor = "permute21.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> loc("permute21")
    %22 = "tensorop.weight"() {key = "w22"} : () -> tensor<4xf32>
    %23 = "tensorop.add"(%21, %22) {source.tensor = "add23.out"} : (tensor<1x4x4x4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc("add23")
    %24 = "tensorop.weight"() {key = "w24"} : () -> tensor<4xf32>
    %25 = "tensorop.prelu"(%23, %24) {axis = 3, source.tensor = "prelu25.out"} : (tensor<1x4x4x4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc("prelu25")
    %26 = "tensorop.reshape"(%25) {shape = [1, 64], source.tensor = "reshape26.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x64xf32> loc("reshape26")
    %27 = "tensorop.weight"() {key = "w27"} : () -> tensor<64x5xf32>
    %28 = "tensorop.matmul"(%26, %27) {source.tensor = "matmul28.out"} : (tensor<1x64xf32>, tensor<64x5xf32>) -> tensor<1x5xf32> loc("matmul28")
    %29 = "tensorop.weight"() {key = "w29"} : () -> tensor<5xf32>
    %30 = "tensorop.add"(%28, %29) {source.tensor = "add30.out"} : (tensor<1x5xf32>, tensor<5xf32>) -> tensor<1x5xf32> loc("add30")
    %31 = "tensorop.softmax"(%30) {axis = 1, source.tensor = "softmax31.out"} : (tensor<1x5xf32>) -> tensor<1x5xf32> loc("softmax31")
    "func.return"(%31) : (tensor<1x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after canonicalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x8x8x3xf32>) -> tensor<1x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x8x8x3xf32>):
    %1 = "tensorop.permute"(%0) {order = [0, 3, 1, 2]} : (tensor<1x8x8x3xf32>) -> tensor<1x3x8x8xf32> loc("permute3")
    %2 = "tensorop.weight"() {key = "sub2.scale"} : () -> tensor<3xf32> loc("sub2")
    %3 = "tensorop.weight"() {key = "sub2.shift"} : () -> tensor<3xf32> loc("sub2")
    %4 = "tensorop.scale"(%1, %2, %3) {source.tensor = "permute3.out"} : (tensor<1x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x8x8xf32> loc("sub2")
    %5 = "tensorop.weight"() {key = "w5.1"} : () -> tensor<4x3x3x3xf32>
    %6 = "tensorop.weight"() {key = "conv6+mul9.bias"} : () -> tensor<4xf32> loc("add11")
    %7 = "tensorop.conv"(%4, %5, %6) {pads = [0, 1, 0, 1], source.tensor = "add11.out", strides = [2, 2]} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc(fused["pad4", "conv6", "mul9", "add11"])
    %8 = "tensorop.hard_swish"(%7) {source.tensor = "div17.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> loc(fused["add13", "clip14", "mul15", "div17", "permute18"])
    %9 = "tensorop.weight"() {key = "w19"} : () -> tensor<4x1x3x3xf32>
    %10 = "tensorop.weight"() {key = "conv20.bias"} : () -> tensor<4xf32> loc("add23")
    %11 = "tensorop.conv"(%8, %9, %10) {group = 4, pads = [1, 1, 1, 1], source.tensor = "add23.out"} : (tensor<1x4x4x4xf32>, tensor<4x1x3x3xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc(fused["conv20", "add23"])
    %12 = "tensorop.weight"() {key = "w24"} : () -> tensor<4xf32>
    %13 = "tensorop.prelu"(%11, %12) {source.tensor = "prelu25.out"} : (tensor<1x4x4x4xf32>, tensor<4xf32>) -> tensor<1x4x4x4xf32> loc("prelu25")
    %14 = "tensorop.weight"() {key = "w27.1"} : () -> tensor<64x5xf32>
    %15 = "tensorop.reshape"(%13) {shape = [1, 64], source.tensor = "reshape26.out"} : (tensor<1x4x4x4xf32>) -> tensor<1x64xf32> loc(fused["permute21", "reshape26"])
    %16 = "tensorop.weight"() {key = "w29.1"} : () -> tensor<5xf32>
    %17 = "tensorop.matmul"(%15, %14, %16) {source.tensor = "add30.out"} : (tensor<1x64xf32>, tensor<64x5xf32>, tensor<5xf32>) -> tensor<1x5xf32> loc(fused["matmul28", "add30"])
    %18 = "tensorop.softmax"(%17) {axis = 1, source.tensor = "softmax31.out"} : (tensor<1x5xf32>) -> tensor<1x5xf32> loc("softmax31")
    "func.return"(%18) : (tensor<1x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
