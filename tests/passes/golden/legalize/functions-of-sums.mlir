// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x8xf32>) -> (tensor<2x3x1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x8xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.mul"(%0, %1) {source.tensor = "mul2.out"} : (tensor<2x3x8xf32>, tensor<1xf32>) -> tensor<2x3x8xf32> loc("mul2")
    %3 = "tensorop.exp"(%2) {source.tensor = "exp3.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc("exp3")
    %4 = "tensorop.reduce"(%3) {axes = [2], method = "sum", source.tensor = "reduce4.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32> loc("reduce4")
    %5 = "tensorop.log"(%4) {source.tensor = "log5.out"} : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32> loc("log5")
    %6 = "tensorop.reduce"(%0) {axes = [1, 2], keepdims = false, method = "l2", source.tensor = "reduce6.out"} : (tensor<2x3x8xf32>) -> tensor<2xf32> loc("reduce6")
    %7 = "tensorop.reduce"(%0) {axes = [1, 2], keepdims = false, method = "sum_square", source.tensor = "reduce7.out"} : (tensor<2x3x8xf32>) -> tensor<2xf32> loc("reduce7")
    %8 = "tensorop.reduce"(%0) {axes = [1, 2], keepdims = false, method = "log_sum_exp", source.tensor = "reduce8.out"} : (tensor<2x3x8xf32>) -> tensor<2xf32> loc("reduce8")
    "func.return"(%5, %6, %7, %8) : (tensor<2x3x1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x8xf32>) -> (tensor<2x3x1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x8xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.mul"(%0, %1) {source.tensor = "mul2.out"} : (tensor<2x3x8xf32>, tensor<1xf32>) -> tensor<2x3x8xf32> loc("mul2")
    %3 = "tensorop.exp"(%2) {source.tensor = "exp3.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc("exp3")
    %4 = "tensorop.reshape"(%3) {shape = [6, 8, 1, 1]} : (tensor<2x3x8xf32>) -> tensor<6x8x1x1xf32> loc("reduce4")
    %5 = "tensorop.weight"() {key = "reduce4.ones"} : () -> tensor<1x8x1x1xf32> loc("reduce4")
    %6 = "tensorop.conv"(%4, %5) {codegen.macs = 0} : (tensor<6x8x1x1xf32>, tensor<1x8x1x1xf32>) -> tensor<6x1x1x1xf32> loc("reduce4")
    %7 = "tensorop.reshape"(%6) {shape = [2, 3, 1], source.tensor = "reduce4.out"} : (tensor<6x1x1x1xf32>) -> tensor<2x3x1xf32> loc("reduce4")
    %8 = "tensorop.log"(%7) {source.tensor = "log5.out"} : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32> loc("log5")
    %9 = "tensorop.weight"() {key = "reduce6.number"} : () -> tensor<1x1x1xf32> loc("reduce6")
    %10 = "tensorop.pow"(%0, %9) : (tensor<2x3x8xf32>, tensor<1x1x1xf32>) -> tensor<2x3x8xf32> loc("reduce6")
    %11 = "tensorop.reshape"(%10) {shape = [2, 24, 1, 1]} : (tensor<2x3x8xf32>) -> tensor<2x24x1x1xf32> loc("reduce6")
    %12 = "tensorop.weight"() {key = "reduce6.ones"} : () -> tensor<1x24x1x1xf32> loc("reduce6")
    %13 = "tensorop.conv"(%11, %12) {codegen.macs = 0} : (tensor<2x24x1x1xf32>, tensor<1x24x1x1xf32>) -> tensor<2x1x1x1xf32> loc("reduce6")
    %14 = "tensorop.reshape"(%13) {shape = [2, 1, 1]} : (tensor<2x1x1x1xf32>) -> tensor<2x1x1xf32> loc("reduce6")
    %15 = "tensorop.sqrt"(%14) : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32> loc("reduce6")
    %16 = "tensorop.reshape"(%15) {shape = [2], source.tensor = "reduce6.out"} : (tensor<2x1x1xf32>) -> tensor<2xf32> loc("reduce6")
    %17 = "tensorop.weight"() {key = "reduce7.number"} : () -> tensor<1x1x1xf32> loc("reduce7")
    %18 = "tensorop.pow"(%0, %17) : (tensor<2x3x8xf32>, tensor<1x1x1xf32>) -> tensor<2x3x8xf32> loc("reduce7")
    %19 = "tensorop.reshape"(%18) {shape = [2, 24, 1, 1]} : (tensor<2x3x8xf32>) -> tensor<2x24x1x1xf32> loc("reduce7")
    %20 = "tensorop.weight"() {key = "reduce7.ones"} : () -> tensor<1x24x1x1xf32> loc("reduce7")
    %21 = "tensorop.conv"(%19, %20) {codegen.macs = 0} : (tensor<2x24x1x1xf32>, tensor<1x24x1x1xf32>) -> tensor<2x1x1x1xf32> loc("reduce7")
    %22 = "tensorop.reshape"(%21) {shape = [2, 1, 1]} : (tensor<2x1x1x1xf32>) -> tensor<2x1x1xf32> loc("reduce7")
    %23 = "tensorop.reshape"(%22) {shape = [2], source.tensor = "reduce7.out"} : (tensor<2x1x1xf32>) -> tensor<2xf32> loc("reduce7")
    %24 = "tensorop.reshape"(%0) {shape = [1, 2, 4, 6]} : (tensor<2x3x8xf32>) -> tensor<1x2x4x6xf32> loc("reduce8")
    %25 = "tensorop.max_pool"(%24) {kernel = [4, 6]} : (tensor<1x2x4x6xf32>) -> tensor<1x2x1x1xf32> loc("reduce8")
    %26 = "tensorop.reshape"(%25) {shape = [2, 1, 1]} : (tensor<1x2x1x1xf32>) -> tensor<2x1x1xf32> loc("reduce8")
    %27 = "tensorop.sub"(%0, %26) : (tensor<2x3x8xf32>, tensor<2x1x1xf32>) -> tensor<2x3x8xf32> loc("reduce8")
    %28 = "tensorop.exp"(%27) : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc("reduce8")
    %29 = "tensorop.reshape"(%28) {shape = [2, 24, 1, 1]} : (tensor<2x3x8xf32>) -> tensor<2x24x1x1xf32> loc("reduce8")
    %30 = "tensorop.weight"() {key = "reduce8.ones"} : () -> tensor<1x24x1x1xf32> loc("reduce8")
    %31 = "tensorop.conv"(%29, %30) {codegen.macs = 0} : (tensor<2x24x1x1xf32>, tensor<1x24x1x1xf32>) -> tensor<2x1x1x1xf32> loc("reduce8")
    %32 = "tensorop.reshape"(%31) {shape = [2, 1, 1]} : (tensor<2x1x1x1xf32>) -> tensor<2x1x1xf32> loc("reduce8")
    %33 = "tensorop.log"(%32) : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32> loc("reduce8")
    %34 = "tensorop.add"(%33, %26) : (tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32> loc("reduce8")
    %35 = "tensorop.reshape"(%34) {shape = [2], source.tensor = "reduce8.out"} : (tensor<2x1x1xf32>) -> tensor<2xf32> loc("reduce8")
    "func.return"(%8, %16, %23, %35) : (tensor<2x3x1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()
