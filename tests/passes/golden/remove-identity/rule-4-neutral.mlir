// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("relu1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<1xf32>
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<4xf32>
    %4 = "tensorop.add"(%3, %1) {source.tensor = "add4.out"} : (tensor<4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("add4")
    %5 = "tensorop.mul"(%2, %4) {source.tensor = "mul5.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<1xf32>
    %7 = "tensorop.sub"(%5, %6) {source.tensor = "sub7.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("sub7")
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<2x1xf32>
    %9 = "tensorop.div"(%7, %8) {source.tensor = "div9.out"} : (tensor<1x2x4xf32>, tensor<2x1xf32>) -> tensor<1x2x4xf32> loc("div9")
    %10 = "tensorop.weight"() {key = "w10"} : () -> tensor<1xf32>
    %11 = "tensorop.pow"(%9, %10) {source.tensor = "pow11.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("pow11")
    "func.return"(%11) : (tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after remove-identity
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["relu1", "add4", "mul5", "sub7", "div9", "pow11"])
    "func.return"(%1) : (tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
