// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>, tensor<1x1xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>, %1: tensor<1x1xf32>):
    %2 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %3 = "tensorop.add"(%0, %2) {source.tensor = "add2.out"} : (tensor<1x4xf32>, tensor<1xf32>) -> tensor<1x4xf32> loc("add2")
    %4 = "tensorop.clip"(%3) {max = 5.0, min = 0.0, source.tensor = "clip3.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("clip3")
    %5 = "tensorop.weight"() {key = "w4"} : () -> tensor<1xf32>
    %6 = "tensorop.div"(%4, %5) {source.tensor = "div5.out"} : (tensor<1x4xf32>, tensor<1xf32>) -> tensor<1x4xf32> loc("div5")
    %7 = "tensorop.weight"() {key = "w6"} : () -> tensor<1x4xf32>
    %8 = "tensorop.add"(%1, %7) {source.tensor = "add7.out"} : (tensor<1x1xf32>, tensor<1x4xf32>) -> tensor<1x4xf32> loc("add7")
    %9 = "tensorop.clip"(%8) {max = 1.0, min = 0.0, source.tensor = "clip8.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("clip8")
    %10 = "tensorop.clip"(%0) {max = 6.0, min = 0.0, source.tensor = "clip9.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("clip9")
    %11 = "tensorop.weight"() {key = "w10"} : () -> tensor<1xf32>
    %12 = "tensorop.div"(%10, %11) {source.tensor = "div11.out"} : (tensor<1x4xf32>, tensor<1xf32>) -> tensor<1x4xf32> loc("div11")
    "func.return"(%6, %12, %9) : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data", "one"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fuse-patterns
// unchanged
