// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x5xf32>):
    %1 = "tensorop.log_softmax"(%0) {axis = 2, source.tensor = "log_softmax1.out"} : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32> loc("log_softmax1")
    "func.return"(%1) : (tensor<2x3x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x5xf32>):
    %1 = "tensorop.reshape"(%0) {shape = [1, 6, 1, 5]} : (tensor<2x3x5xf32>) -> tensor<1x6x1x5xf32> loc("log_softmax1")
    %2 = "tensorop.max_pool"(%1) {kernel = [1, 5]} : (tensor<1x6x1x5xf32>) -> tensor<1x6x1x1xf32> loc("log_softmax1")
    %3 = "tensorop.reshape"(%2) {shape = [2, 3, 1]} : (tensor<1x6x1x1xf32>) -> tensor<2x3x1xf32> loc("log_softmax1")
    %4 = "tensorop.sub"(%0, %3) : (tensor<2x3x5xf32>, tensor<2x3x1xf32>) -> tensor<2x3x5xf32> loc("log_softmax1")
    %5 = "tensorop.exp"(%4) : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32> loc("log_softmax1")
    %6 = "tensorop.reshape"(%5) {shape = [6, 5, 1, 1]} : (tensor<2x3x5xf32>) -> tensor<6x5x1x1xf32> loc("log_softmax1")
    %7 = "tensorop.weight"() {key = "log_softmax1.ones"} : () -> tensor<1x5x1x1xf32> loc("log_softmax1")
    %8 = "tensorop.conv"(%6, %7) {codegen.macs = 0} : (tensor<6x5x1x1xf32>, tensor<1x5x1x1xf32>) -> tensor<6x1x1x1xf32> loc("log_softmax1")
    %9 = "tensorop.reshape"(%8) {shape = [2, 3, 1]} : (tensor<6x1x1x1xf32>) -> tensor<2x3x1xf32> loc("log_softmax1")
    %10 = "tensorop.log"(%9) : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32> loc("log_softmax1")
    %11 = "tensorop.sub"(%4, %10) {source.tensor = "log_softmax1.out"} : (tensor<2x3x5xf32>, tensor<2x3x1xf32>) -> tensor<2x3x5xf32> loc("log_softmax1")
    "func.return"(%11) : (tensor<2x3x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
