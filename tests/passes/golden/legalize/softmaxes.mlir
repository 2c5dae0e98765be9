// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x5xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x5xf32>):
    %1 = "tensorop.softmax"(%0) {axis = 1, source.tensor = "softmax1.out"} : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32> loc("softmax1")
    %2 = "tensorop.softmax"(%0) {source.tensor = "softmax2.out"} : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32> loc("softmax2")
    "func.return"(%1, %2) : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x5xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x5xf32>):
    %1 = "tensorop.permute"(%0) {order = [0, 2, 1]} : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32> loc("softmax1")
    %2 = "tensorop.reshape"(%1) {shape = [1, 10, 1, 3]} : (tensor<2x5x3xf32>) -> tensor<1x10x1x3xf32> loc("softmax1")
    %3 = "tensorop.max_pool"(%2) {kernel = [1, 3]} : (tensor<1x10x1x3xf32>) -> tensor<1x10x1x1xf32> loc("softmax1")
    %4 = "tensorop.reshape"(%3) {shape = [2, 5, 1]} : (tensor<1x10x1x1xf32>) -> tensor<2x5x1xf32> loc("softmax1")
    %5 = "tensorop.reshape"(%4) {shape = [2, 1, 5]} : (tensor<2x5x1xf32>) -> tensor<2x1x5xf32> loc("softmax1")
    %6 = "tensorop.sub"(%0, %5) : (tensor<2x3x5xf32>, tensor<2x1x5xf32>) -> tensor<2x3x5xf32> loc("softmax1")
    %7 = "tensorop.exp"(%6) : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32> loc("softmax1")
    %8 = "tensorop.reshape"(%7) {shape = [2, 3, 1, 5]} : (tensor<2x3x5xf32>) -> tensor<2x3x1x5xf32> loc("softmax1")
    %9 = "tensorop.weight"() {key = "softmax1.ones"} : () -> tensor<1x3x1x1xf32> loc("softmax1")
    %10 = "tensorop.conv"(%8, %9) {codegen.macs = 0} : (tensor<2x3x1x5xf32>, tensor<1x3x1x1xf32>) -> tensor<2x1x1x5xf32> loc("softmax1")
    %11 = "tensorop.reshape"(%10) {shape = [2, 1, 5]} : (tensor<2x1x1x5xf32>) -> tensor<2x1x5xf32> loc("softmax1")
    %12 = "tensorop.weight"() {key = "softmax1.number"} : () -> tensor<1x1x1xf32> loc("softmax1")
    %13 = "tensorop.div"(%12, %11) : (tensor<1x1x1xf32>, tensor<2x1x5xf32>) -> tensor<2x1x5xf32> loc("softmax1")
    %14 = "tensorop.tile"(%13) {reps = [1, 3, 1]} : (tensor<2x1x5xf32>) -> tensor<2x3x5xf32> loc("softmax1")
    %15 = "tensorop.mul"(%7, %14) {source.tensor = "softmax1.out"} : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32> loc("softmax1")
    %16 = "tensorop.reshape"(%0) {shape = [1, 6, 1, 5]} : (tensor<2x3x5xf32>) -> tensor<1x6x1x5xf32> loc("softmax2")
    %17 = "tensorop.max_pool"(%16) {kernel = [1, 5]} : (tensor<1x6x1x5xf32>) -> tensor<1x6x1x1xf32> loc("softmax2")
    %18 = "tensorop.reshape"(%17) {shape = [2, 3, 1]} : (tensor<1x6x1x1xf32>) -> tensor<2x3x1xf32> loc("softmax2")
    %19 = "tensorop.sub"(%0, %18) : (tensor<2x3x5xf32>, tensor<2x3x1xf32>) -> tensor<2x3x5xf32> loc("softmax2")
    %20 = "tensorop.exp"(%19) : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32> loc("softmax2")
    %21 = "tensorop.reshape"(%20) {shape = [6, 5, 1, 1]} : (tensor<2x3x5xf32>) -> tensor<6x5x1x1xf32> loc("softmax2")
    %22 = "tensorop.weight"() {key = "softmax2.ones"} : () -> tensor<1x5x1x1xf32> loc("softmax2")
    %23 = "tensorop.conv"(%21, %22) {codegen.macs = 0} : (tensor<6x5x1x1xf32>, tensor<1x5x1x1xf32>) -> tensor<6x1x1x1xf32> loc("softmax2")
    %24 = "tensorop.reshape"(%23) {shape = [2, 3, 1]} : (tensor<6x1x1x1xf32>) -> tensor<2x3x1xf32> loc("softmax2")
    %25 = "tensorop.weight"() {key = "softmax2.number"} : () -> tensor<1x1x1xf32> loc("softmax2")
    %26 = "tensorop.div"(%25, %24) : (tensor<1x1x1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32> loc("softmax2")
    %27 = "tensorop.reshape"(%20) {shape = [1, 6, 1, 5]} : (tensor<2x3x5xf32>) -> tensor<1x6x1x5xf32> loc("softmax2")
    %28 = "tensorop.reshape"(%26) {shape = [1, 6, 1, 1]} : (tensor<2x3x1xf32>) -> tensor<1x6x1x1xf32> loc("softmax2")
    %29 = "tensorop.mul"(%27, %28) : (tensor<1x6x1x5xf32>, tensor<1x6x1x1xf32>) -> tensor<1x6x1x5xf32> loc("softmax2")
    %30 = "tensorop.reshape"(%29) {shape = [2, 3, 5], source.tensor = "softmax2.out"} : (tensor<1x6x1x5xf32>) -> tensor<2x3x5xf32> loc("softmax2")
    "func.return"(%15, %30) : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
