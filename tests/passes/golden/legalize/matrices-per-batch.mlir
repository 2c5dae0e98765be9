// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4x5xf32>) -> tensor<2x3x4x6xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x3x5x6xf32>
    %2 = "tensorop.matmul"(%0, %1) {source.tensor = "matmul2.out"} : (tensor<1x3x4x5xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x4x6xf32> loc("matmul2")
    "func.return"(%2) : (tensor<2x3x4x6xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4x5xf32>) -> tensor<2x3x4x6xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x3x5x6xf32>
    %2 = "tensorop.tile"(%0) {reps = [2, 1, 1, 1]} : (tensor<1x3x4x5xf32>) -> tensor<2x3x4x5xf32> loc("matmul2")
    %3 = "tensorop.reshape"(%2) {shape = [6, 4, 5]} : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32> loc("matmul2")
    %4 = "tensorop.slice"(%3) {ends = [1, 4, 5], starts = [0, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %5 = "tensorop.weight"() {key = "matmul2.weight"} : () -> tensor<5x6xf32> loc("matmul2")
    %6 = "tensorop.reshape"(%4) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %7 = "tensorop.matmul"(%6, %5) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %8 = "tensorop.reshape"(%7) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %9 = "tensorop.slice"(%3) {ends = [2, 4, 5], starts = [1, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %10 = "tensorop.weight"() {key = "matmul2.weight.1"} : () -> tensor<5x6xf32> loc("matmul2")
    %11 = "tensorop.reshape"(%9) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %12 = "tensorop.matmul"(%11, %10) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %13 = "tensorop.reshape"(%12) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %14 = "tensorop.slice"(%3) {ends = [3, 4, 5], starts = [2, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %15 = "tensorop.weight"() {key = "matmul2.weight.2"} : () -> tensor<5x6xf32> loc("matmul2")
    %16 = "tensorop.reshape"(%14) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %17 = "tensorop.matmul"(%16, %15) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %18 = "tensorop.reshape"(%17) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %19 = "tensorop.slice"(%3) {ends = [4, 4, 5], starts = [3, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %20 = "tensorop.weight"() {key = "matmul2.weight.3"} : () -> tensor<5x6xf32> loc("matmul2")
    %21 = "tensorop.reshape"(%19) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %22 = "tensorop.matmul"(%21, %20) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %23 = "tensorop.reshape"(%22) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %24 = "tensorop.slice"(%3) {ends = [5, 4, 5], starts = [4, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %25 = "tensorop.weight"() {key = "matmul2.weight.4"} : () -> tensor<5x6xf32> loc("matmul2")
    %26 = "tensorop.reshape"(%24) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %27 = "tensorop.matmul"(%26, %25) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %28 = "tensorop.reshape"(%27) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %29 = "tensorop.slice"(%3) {ends = [6, 4, 5], starts = [5, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %30 = "tensorop.weight"() {key = "matmul2.weight.5"} : () -> tensor<5x6xf32> loc("matmul2")
    %31 = "tensorop.reshape"(%29) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %32 = "tensorop.matmul"(%31, %30) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %33 = "tensorop.reshape"(%32) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %34 = "tensorop.concat"(%8, %13, %18, %23, %28, %33) {axis = 0} : (tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>) -> tensor<6x4x6xf32> loc("matmul2")
    %35 = "tensorop.reshape"(%34) {shape = [2, 3, 4, 6], source.tensor = "matmul2.out"} : (tensor<6x4x6xf32>) -> tensor<2x3x4x6xf32> loc("matmul2")
    "func.return"(%35) : (tensor<2x3x4x6xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
