// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.sigmoid"(%0) {source.tensor = "sigmoid1.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("sigmoid1")
    %2 = "tensorop.sigmoid"(%0) {source.tensor = "sigmoid2.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("sigmoid2")
    %3 = "tensorop.log"(%2) {source.tensor = "log3.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("log3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<1xf32>
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<1xf32>
    %6 = "tensorop.neg"(%0) {source.tensor = "neg6.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("neg6")
    %7 = "tensorop.exp"(%6) {source.tensor = "exp7.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("exp7")
    %8 = "tensorop.add"(%5, %7) {source.tensor = "add8.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("add8")
    %9 = "tensorop.div"(%4, %8) {source.tensor = "div9.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("div9")
    %10 = "tensorop.log"(%9) {source.tensor = "log10.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("log10")
    %11 = "tensorop.log"(%1) {source.tensor = "log11.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("log11")
    "func.return"(%3, %10, %11, %1) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after fuse-gates
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.sigmoid"(%0) {source.tensor = "sigmoid1.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("sigmoid1")
    %2 = "tensorop.neg"(%0) : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %3 = "tensorop.softplus"(%2) : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %4 = "tensorop.neg"(%3) {source.tensor = "log3.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["sigmoid2", "log3"])
    %5 = "tensorop.neg"(%0) : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %6 = "tensorop.softplus"(%5) : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %7 = "tensorop.neg"(%6) {source.tensor = "log10.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["neg6", "exp7", "add8", "div9", "log10"])
    %8 = "tensorop.log"(%1) {source.tensor = "log11.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("log11")
    "func.return"(%4, %7, %8, %1) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()
