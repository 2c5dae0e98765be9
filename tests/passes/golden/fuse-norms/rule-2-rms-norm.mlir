// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x8xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<1xf32>
    %3 = "tensorop.pow"(%0, %2) {source.tensor = "pow3.out"} : (tensor<2x3x8xf32>, tensor<1xf32>) -> tensor<2x3x8xf32> loc("pow3")
    %4 = "tensorop.reduce"(%3) {axes = [2], method = "mean", source.tensor = "reduce4.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32> loc("reduce4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<1xf32>
    %6 = "tensorop.add"(%4, %5) {source.tensor = "add6.out"} : (tensor<2x3x1xf32>, tensor<1xf32>) -> tensor<2x3x1xf32> loc("add6")
    %7 = "tensorop.sqrt"(%6) {source.tensor = "sqrt7.out"} : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32> loc("sqrt7")
    %8 = "tensorop.div"(%1, %7) {source.tensor = "div8.out"} : (tensor<1xf32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32> loc("div8")
    %9 = "tensorop.mul"(%0, %8) {source.tensor = "mul9.out"} : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32> loc("mul9")
    %10 = "tensorop.weight"() {key = "w10"} : () -> tensor<8xf32>
    %11 = "tensorop.mul"(%9, %10) {source.tensor = "mul11.out"} : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32> loc("mul11")
    %12 = "tensorop.mul"(%0, %0) {source.tensor = "mul12.out"} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc("mul12")
    %13 = "tensorop.reduce"(%12) {axes = [1, 2], method = "mean", source.tensor = "reduce13.out"} : (tensor<2x3x8xf32>) -> tensor<2x1x1xf32> loc("reduce13")
    %14 = "tensorop.weight"() {key = "w14"} : () -> tensor<1xf32>
    %15 = "tensorop.add"(%13, %14) {source.tensor = "add15.out"} : (tensor<2x1x1xf32>, tensor<1xf32>) -> tensor<2x1x1xf32> loc("add15")
    %16 = "tensorop.sqrt"(%15) {source.tensor = "sqrt16.out"} : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32> loc("sqrt16")
    %17 = "tensorop.div"(%0, %16) {source.tensor = "div17.out"} : (tensor<2x3x8xf32>, tensor<2x1x1xf32>) -> tensor<2x3x8xf32> loc("div17")
    "func.return"(%11, %17) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-norms
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x8xf32>):
    %1 = "tensorop.weight"() {key = "mul11.gamma"} : () -> tensor<8xf32> loc("mul11")
    %2 = "tensorop.rms_norm"(%0, %1) {axis = 2, epsilon = 9.999999747378752e-06, source.tensor = "mul11.out"} : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32> loc(fused["pow3", "reduce4", "add6", "sqrt7", "div8", "mul9", "mul11"])
    %3 = "tensorop.rms_norm"(%0) {axis = 1, epsilon = 9.999999747378752e-06, source.tensor = "div17.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc(fused["mul12", "reduce13", "add15", "sqrt16", "div17"])
    "func.return"(%2, %3) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
