// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2xf32>) -> (tensor<1x4x2xf32>, tensor<1x4x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2xf32>):
    %1 = "tensorop.reduce"(%0) {axes = [1], method = "max", source.tensor = "reduce1.out"} : (tensor<1x4x2xf32>) -> tensor<1x1x2xf32> loc("reduce1")
    %2 = "tensorop.sub"(%0, %1) {source.tensor = "sub2.out"} : (tensor<1x4x2xf32>, tensor<1x1x2xf32>) -> tensor<1x4x2xf32> loc("sub2")
    %3 = "tensorop.exp"(%2) {source.tensor = "exp3.out"} : (tensor<1x4x2xf32>) -> tensor<1x4x2xf32> loc("exp3")
    %4 = "tensorop.exp"(%0) {source.tensor = "exp4.out"} : (tensor<1x4x2xf32>) -> tensor<1x4x2xf32> loc("exp4")
    %5 = "tensorop.reduce"(%3) {axes = [1], method = "sum", source.tensor = "reduce5.out"} : (tensor<1x4x2xf32>) -> tensor<1x1x2xf32> loc("reduce5")
    %6 = "tensorop.div"(%3, %5) {source.tensor = "div6.out"} : (tensor<1x4x2xf32>, tensor<1x1x2xf32>) -> tensor<1x4x2xf32> loc("div6")
    %7 = "tensorop.reduce"(%4) {axes = [2], method = "sum", source.tensor = "reduce7.out"} : (tensor<1x4x2xf32>) -> tensor<1x4x1xf32> loc("reduce7")
    %8 = "tensorop.div"(%4, %7) {source.tensor = "div8.out"} : (tensor<1x4x2xf32>, tensor<1x4x1xf32>) -> tensor<1x4x2xf32> loc("div8")
    "func.return"(%6, %8) : (tensor<1x4x2xf32>, tensor<1x4x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-patterns
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2xf32>) -> (tensor<1x4x2xf32>, tensor<1x4x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2xf32>):
    %1 = "tensorop.softmax"(%0) {axis = 1, source.tensor = "div6.out"} : (tensor<1x4x2xf32>) -> tensor<1x4x2xf32> loc(fused["reduce1", "sub2", "exp3", "reduce5", "div6"])
    %2 = "tensorop.softmax"(%0) {axis = 2, source.tensor = "div8.out"} : (tensor<1x4x2xf32>) -> tensor<1x4x2xf32> loc(fused["exp4", "reduce7", "div8"])
    "func.return"(%1, %2) : (tensor<1x4x2xf32>, tensor<1x4x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
