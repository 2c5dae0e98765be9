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
    %1 = "tensorop.tile"(%0) {reps = [2, 1, 1, 1]} : (tensor<1x3x4x5xf32>) -> tensor<2x3x4x5xf32> loc("matmul2")
    %2 = "tensorop.reshape"(%1) {shape = [6, 4, 5]} : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32> loc("matmul2")
    %3 = "tensorop.slice"(%2) {ends = [1, 4, 5], starts = [0, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %4 = "tensorop.weight"() {key = "matmul2.weight"} : () -> tensor<5x6xf32> loc("matmul2")
    %5 = "tensorop.reshape"(%3) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %6 = "tensorop.matmul"(%5, %4) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %7 = "tensorop.reshape"(%6) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %8 = "tensorop.slice"(%2) {ends = [2, 4, 5], starts = [1, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %9 = "tensorop.weight"() {key = "matmul2.weight.1"} : () -> tensor<5x6xf32> loc("matmul2")
    %10 = "tensorop.reshape"(%8) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %11 = "tensorop.matmul"(%10, %9) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %12 = "tensorop.reshape"(%11) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %13 = "tensorop.slice"(%2) {ends = [3, 4, 5], starts = [2, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %14 = "tensorop.weight"() {key = "matmul2.weight.2"} : () -> tensor<5x6xf32> loc("matmul2")
    %15 = "tensorop.reshape"(%13) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %16 = "tensorop.matmul"(%15, %14) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %17 = "tensorop.reshape"(%16) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %18 = "tensorop.slice"(%2) {ends = [4, 4, 5], starts = [3, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %19 = "tensorop.weight"() {key = "matmul2.weight.3"} : () -> tensor<5x6xf32> loc("matmul2")
    %20 = "tensorop.reshape"(%18) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %21 = "tensorop.matmul"(%20, %19) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %22 = "tensorop.reshape"(%21) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %23 = "tensorop.slice"(%2) {ends = [5, 4, 5], starts = [4, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %24 = "tensorop.weight"() {key = "matmul2.weight.4"} : () -> tensor<5x6xf32> loc("matmul2")
    %25 = "tensorop.reshape"(%23) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %26 = "tensorop.matmul"(%25, %24) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %27 = "tensorop.reshape"(%26) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %28 = "tensorop.slice"(%2) {ends = [6, 4, 5], starts = [5, 0, 0], steps = [1, 1, 1]} : (tensor<6x4x5xf32>) -> tensor<1x4x5xf32> loc("matmul2")
    %29 = "tensorop.weight"() {key = "matmul2.weight.5"} : () -> tensor<5x6xf32> loc("matmul2")
    %30 = "tensorop.reshape"(%28) {shape = [4, 5]} : (tensor<1x4x5xf32>) -> tensor<4x5xf32> loc("matmul2")
    %31 = "tensorop.matmul"(%30, %29) : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("matmul2")
    %32 = "tensorop.reshape"(%31) {shape = [1, 4, 6]} : (tensor<4x6xf32>) -> tensor<1x4x6xf32> loc("matmul2")
    %33 = "tensorop.concat"(%7, %12, %17, %22, %27, %32) {axis = 0} : (tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>) -> tensor<6x4x6xf32> loc("matmul2")
    %34 = "tensorop.reshape"(%33) {shape = [2, 3, 4, 6], source.tensor = "matmul2.out"} : (tensor<6x4x6xf32>) -> tensor<2x3x4x6xf32> loc("matmul2")
    "func.return"(%34) : (tensor<2x3x4x6xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
