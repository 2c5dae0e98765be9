// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x2xf32>) -> (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x2xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<1xf32>
    %3 = "tensorop.add"(%0, %1) {source.tensor = "add3.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("add3")
    %4 = "tensorop.clip"(%3) {max = 6.0, min = 0.0, source.tensor = "clip4.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("clip4")
    %5 = "tensorop.mul"(%0, %4) {source.tensor = "mul5.out"} : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("mul5")
    %6 = "tensorop.div"(%5, %2) {source.tensor = "div6.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("div6")
    %7 = "tensorop.add"(%1, %0) {source.tensor = "add7.out"} : (tensor<1xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("add7")
    %8 = "tensorop.clip"(%7) {max = 6.0, min = 0.0, source.tensor = "clip8.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("clip8")
    %9 = "tensorop.weight"() {key = "w9"} : () -> tensor<1xf32>
    %10 = "tensorop.mul"(%0, %9) {source.tensor = "mul10.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("mul10")
    %11 = "tensorop.mul"(%8, %10) {source.tensor = "mul11.out"} : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("mul11")
    %12 = "tensorop.add"(%0, %1) {source.tensor = "add12.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("add12")
    %13 = "tensorop.clip"(%12) {max = 6.0, min = 0.0, source.tensor = "clip13.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("clip13")
    %14 = "tensorop.div"(%13, %2) {source.tensor = "div14.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("div14")
    %15 = "tensorop.mul"(%0, %14) {source.tensor = "mul15.out"} : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("mul15")
    %16 = "tensorop.hard_sigmoid"(%0) {alpha = 0.16666666666666666, source.tensor = "hard_sigmoid16.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("hard_sigmoid16")
    %17 = "tensorop.mul"(%16, %0) {source.tensor = "mul17.out"} : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("mul17")
    "func.return"(%6, %11, %15, %17) : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after fuse-patterns
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x2xf32>) -> (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x2xf32>):
    %1 = "tensorop.hard_swish"(%0) {source.tensor = "div6.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc(fused["add3", "clip4", "mul5", "div6"])
    %2 = "tensorop.hard_swish"(%0) {source.tensor = "mul11.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc(fused["add7", "clip8", "mul10", "mul11"])
    %3 = "tensorop.hard_swish"(%0) {source.tensor = "mul15.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc(fused["add12", "clip13", "div14", "mul15"])
    %4 = "tensorop.hard_swish"(%0) {source.tensor = "mul17.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc(fused["hard_sigmoid16", "mul17"])
    "func.return"(%1, %2, %3, %4) : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()
