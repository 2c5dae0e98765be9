// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.mul"(%0, %1) {source.tensor = "mul2.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("mul2")
    %3 = "tensorop.sigmoid"(%2) {source.tensor = "sigmoid3.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("sigmoid3")
    %4 = "tensorop.mul"(%3, %0) {source.tensor = "mul4.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul4")
    %5 = "tensorop.sigmoid"(%0) {source.tensor = "sigmoid5.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("sigmoid5")
    %6 = "tensorop.mul"(%0, %5) {source.tensor = "mul6.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul6")
    %7 = "tensorop.weight"() {key = "w7"} : () -> tensor<1xf32>
    %8 = "tensorop.neg"(%0) {source.tensor = "neg8.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("neg8")
    %9 = "tensorop.exp"(%8) {source.tensor = "exp9.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("exp9")
    %10 = "tensorop.add"(%7, %9) {source.tensor = "add10.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("add10")
    %11 = "tensorop.div"(%0, %10) {source.tensor = "div11.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("div11")
    %12 = "tensorop.weight"() {key = "w12"} : () -> tensor<1xf32>
    %13 = "tensorop.weight"() {key = "w13"} : () -> tensor<1xf32>
    %14 = "tensorop.mul"(%0, %13) {source.tensor = "mul14.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("mul14")
    %15 = "tensorop.exp"(%14) {source.tensor = "exp15.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("exp15")
    %16 = "tensorop.add"(%12, %15) {source.tensor = "add16.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("add16")
    %17 = "tensorop.div"(%0, %16) {source.tensor = "div17.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("div17")
    "func.return"(%6, %4, %11, %17) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after fuse-gates
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.swish"(%0) {alpha = 1.7020000219345093, source.tensor = "mul4.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["mul2", "sigmoid3", "mul4"])
    %2 = "tensorop.swish"(%0) {source.tensor = "mul6.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["sigmoid5", "mul6"])
    %3 = "tensorop.swish"(%0) {source.tensor = "div11.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["neg8", "exp9", "add10", "div11"])
    %4 = "tensorop.swish"(%0) {alpha = 1.5, source.tensor = "div17.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["mul14", "exp15", "add16", "div17"])
    "func.return"(%2, %1, %3, %4) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()
