// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.neg"(%0) {source.tensor = "neg2.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("neg2")
    %3 = "tensorop.exp"(%2) {source.tensor = "exp3.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("exp3")
    %4 = "tensorop.add"(%1, %3) {source.tensor = "add4.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("add4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<1xf32>
    %6 = "tensorop.pow"(%4, %5) {source.tensor = "pow6.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("pow6")
    %7 = "tensorop.weight"() {key = "w7"} : () -> tensor<1xf32>
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<1xf32>
    %9 = "tensorop.neg"(%0) {source.tensor = "neg9.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("neg9")
    %10 = "tensorop.exp"(%9) {source.tensor = "exp10.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("exp10")
    %11 = "tensorop.add"(%8, %10) {source.tensor = "add11.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("add11")
    %12 = "tensorop.div"(%7, %11) {source.tensor = "div12.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("div12")
    %13 = "tensorop.exp"(%0) {source.tensor = "exp13.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("exp13")
    %14 = "tensorop.weight"() {key = "w14"} : () -> tensor<1xf32>
    %15 = "tensorop.add"(%13, %14) {source.tensor = "add15.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("add15")
    %16 = "tensorop.log"(%15) {source.tensor = "log16.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("log16")
    "func.return"(%12, %6, %16) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fuse-gates
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.sigmoid"(%0) {source.tensor = "pow6.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["neg2", "exp3", "add4", "pow6"])
    %2 = "tensorop.sigmoid"(%0) {source.tensor = "div12.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["neg9", "exp10", "add11", "div12"])
    %3 = "tensorop.softplus"(%0) {source.tensor = "log16.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["exp13", "add15", "log16"])
    "func.return"(%2, %1, %3) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
