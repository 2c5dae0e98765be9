// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x1x1xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x8xf32>):
    %1 = "tensorop.reduce"(%0) {axes = [1], method = "mean", source.tensor = "reduce1.out"} : (tensor<2x3x8xf32>) -> tensor<2x1x8xf32> loc("reduce1")
    %2 = "tensorop.sub"(%0, %1) {source.tensor = "sub2.out"} : (tensor<2x3x8xf32>, tensor<2x1x8xf32>) -> tensor<2x3x8xf32> loc("sub2")
    %3 = "tensorop.reduce"(%0) {axes = [1, 2], method = "mean", source.tensor = "reduce3.out"} : (tensor<2x3x8xf32>) -> tensor<2x1x1xf32> loc("reduce3")
    %4 = "tensorop.sub"(%0, %3) {source.tensor = "sub4.out"} : (tensor<2x3x8xf32>, tensor<2x1x1xf32>) -> tensor<2x3x8xf32> loc("sub4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<1xf32>
    %6 = "tensorop.pow"(%4, %5) {source.tensor = "pow6.out"} : (tensor<2x3x8xf32>, tensor<1xf32>) -> tensor<2x3x8xf32> loc("pow6")
    %7 = "tensorop.reduce"(%6) {axes = [1, 2], method = "mean", source.tensor = "reduce7.out"} : (tensor<2x3x8xf32>) -> tensor<2x1x1xf32> loc("reduce7")
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<1xf32>
    %9 = "tensorop.add"(%7, %8) {source.tensor = "add9.out"} : (tensor<2x1x1xf32>, tensor<1xf32>) -> tensor<2x1x1xf32> loc("add9")
    %10 = "tensorop.sqrt"(%9) {source.tensor = "sqrt10.out"} : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32> loc("sqrt10")
    %11 = "tensorop.weight"() {key = "w11"} : () -> tensor<1xf32>
    %12 = "tensorop.pow"(%2, %11) {source.tensor = "pow12.out"} : (tensor<2x3x8xf32>, tensor<1xf32>) -> tensor<2x3x8xf32> loc("pow12")
    %13 = "tensorop.reduce"(%12) {axes = [1], method = "mean", source.tensor = "reduce13.out"} : (tensor<2x3x8xf32>) -> tensor<2x1x8xf32> loc("reduce13")
    %14 = "tensorop.weight"() {key = "w14"} : () -> tensor<1xf32>
    %15 = "tensorop.add"(%13, %14) {source.tensor = "add15.out"} : (tensor<2x1x8xf32>, tensor<1xf32>) -> tensor<2x1x8xf32> loc("add15")
    %16 = "tensorop.sqrt"(%15) {source.tensor = "sqrt16.out"} : (tensor<2x1x8xf32>) -> tensor<2x1x8xf32> loc("sqrt16")
    %17 = "tensorop.div"(%2, %16) {source.tensor = "div17.out"} : (tensor<2x3x8xf32>, tensor<2x1x8xf32>) -> tensor<2x3x8xf32> loc("div17")
    %18 = "tensorop.div"(%4, %10) {source.tensor = "div18.out"} : (tensor<2x3x8xf32>, tensor<2x1x1xf32>) -> tensor<2x3x8xf32> loc("div18")
    "func.return"(%17, %18, %10) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x1x1xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fuse-norms
// unchanged
