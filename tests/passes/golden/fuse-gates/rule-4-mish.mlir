// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.exp"(%0) {source.tensor = "exp1.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("exp1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<1xf32>
    %3 = "tensorop.add"(%1, %2) {source.tensor = "add3.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("add3")
    %4 = "tensorop.log"(%3) {source.tensor = "log4.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("log4")
    %5 = "tensorop.tanh"(%4) {source.tensor = "tanh5.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("tanh5")
    %6 = "tensorop.mul"(%5, %0) {source.tensor = "mul6.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul6")
    %7 = "tensorop.softplus"(%0) {source.tensor = "softplus7.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("softplus7")
    %8 = "tensorop.tanh"(%7) {source.tensor = "tanh8.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("tanh8")
    %9 = "tensorop.mul"(%0, %8) {source.tensor = "mul9.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul9")
    "func.return"(%9, %6) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-gates
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.mish"(%0) {source.tensor = "mul6.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["exp1", "add3", "log4", "tanh5", "mul6"])
    %2 = "tensorop.mish"(%0) {source.tensor = "mul9.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["softplus7", "tanh8", "mul9"])
    "func.return"(%2, %1) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
