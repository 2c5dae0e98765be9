// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x1x4xf32>, tensor<3xf32>, tensor<2x3x4xf32>, tensor<3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>, %1: tensor<2x3x4xf32>, %2: tensor<2x3x4xf32>):
    %3 = "tensorop.exp"(%0) {source.tensor = "exp1.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("exp1")
    %4 = "tensorop.exp"(%1) {source.tensor = "exp2.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("exp2")
    %5 = "tensorop.reduce"(%3) {axes = [1], method = "sum", source.tensor = "reduce3.out"} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32> loc("reduce3")
    %6 = "tensorop.log"(%5) {source.tensor = "log4.out"} : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32> loc("log4")
    %7 = "tensorop.reduce"(%4) {axes = [0, 2], keepdims = false, method = "sum", source.tensor = "reduce5.out"} : (tensor<2x3x4xf32>) -> tensor<3xf32> loc("reduce5")
    %8 = "tensorop.log"(%7) {source.tensor = "log6.out"} : (tensor<3xf32>) -> tensor<3xf32> loc("log6")
    %9 = "tensorop.exp"(%2) {source.tensor = "exp7.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("exp7")
    %10 = "tensorop.reduce"(%9) {axes = [0, 2], keepdims = false, method = "sum", source.tensor = "reduce8.out"} : (tensor<2x3x4xf32>) -> tensor<3xf32> loc("reduce8")
    %11 = "tensorop.log"(%10) {source.tensor = "log9.out"} : (tensor<3xf32>) -> tensor<3xf32> loc("log9")
    "func.return"(%6, %8, %4, %11) : (tensor<2x1x4xf32>, tensor<3xf32>, tensor<2x3x4xf32>, tensor<3xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after fuse-patterns
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x1x4xf32>, tensor<3xf32>, tensor<2x3x4xf32>, tensor<3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>, %1: tensor<2x3x4xf32>, %2: tensor<2x3x4xf32>):
    %3 = "tensorop.exp"(%1) {source.tensor = "exp2.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("exp2")
    %4 = "tensorop.reduce"(%0) {axes = [1], method = "log_sum_exp", source.tensor = "log4.out"} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32> loc(fused["exp1", "reduce3", "log4"])
    %5 = "tensorop.reduce"(%3) {axes = [0, 2], keepdims = false, method = "sum", source.tensor = "reduce5.out"} : (tensor<2x3x4xf32>) -> tensor<3xf32> loc("reduce5")
    %6 = "tensorop.log"(%5) {source.tensor = "log6.out"} : (tensor<3xf32>) -> tensor<3xf32> loc("log6")
    %7 = "tensorop.reduce"(%2) {axes = [0, 2], keepdims = false, method = "log_sum_exp", source.tensor = "log9.out"} : (tensor<2x3x4xf32>) -> tensor<3xf32> loc(fused["exp7", "reduce8", "log9"])
    "func.return"(%4, %6, %3, %7) : (tensor<2x1x4xf32>, tensor<3xf32>, tensor<2x3x4xf32>, tensor<3xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()
