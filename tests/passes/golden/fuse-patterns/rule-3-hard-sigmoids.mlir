// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x2xf32>) -> (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x2xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.add"(%0, %1) {source.tensor = "add2.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("add2")
    %3 = "tensorop.clip"(%2) {max = 6.0, min = 0.0, source.tensor = "clip3.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("clip3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<1xf32>
    %5 = "tensorop.div"(%3, %4) {source.tensor = "div5.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("div5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<1xf32>
    %7 = "tensorop.mul"(%6, %0) {source.tensor = "mul7.out"} : (tensor<1xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("mul7")
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<1xf32>
    %9 = "tensorop.add"(%7, %8) {source.tensor = "add9.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("add9")
    %10 = "tensorop.clip"(%9) {max = 1.0, min = 0.0, source.tensor = "clip10.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("clip10")
    %11 = "tensorop.weight"() {key = "w11"} : () -> tensor<4xf32>
    %12 = "tensorop.weight"() {key = "w12"} : () -> tensor<4xf32>
    %13 = "tensorop.scale"(%0, %11, %12) {source.tensor = "scale13.out"} : (tensor<1x4x2x2xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x2x2xf32> loc("scale13")
    %14 = "tensorop.clip"(%13) {max = 6.0, min = 0.0, source.tensor = "clip14.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("clip14")
    %15 = "tensorop.weight"() {key = "w15"} : () -> tensor<4xf32>
    %16 = "tensorop.scale"(%14, %15) {source.tensor = "scale16.out"} : (tensor<1x4x2x2xf32>, tensor<4xf32>) -> tensor<1x4x2x2xf32> loc("scale16")
    "func.return"(%5, %10, %16) : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fuse-patterns
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x2xf32>) -> (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x2xf32>):
    %1 = "tensorop.hard_sigmoid"(%0) {alpha = 0.16666666666666666, source.tensor = "div5.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc(fused["add2", "clip3", "div5"])
    %2 = "tensorop.hard_sigmoid"(%0) {alpha = 0.20000000298023224, source.tensor = "clip10.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc(fused["mul7", "add9", "clip10"])
    %3 = "tensorop.hard_sigmoid"(%0) {alpha = 0.1666666716337204, beta = 0.5000000149011612, source.tensor = "scale16.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc(fused["scale13", "clip14", "scale16"])
    "func.return"(%1, %2, %3) : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
