// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x5xf32>) -> tensor<1x3x60xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x60xi64>
    %2 = "tensorop.gather"(%0, %1) {axis = 1, source.tensor = "gather2.out"} : (tensor<1x5xf32>, tensor<3x60xi64>) -> tensor<1x3x60xf32> loc("gather2")
    "func.return"(%2) : (tensor<1x3x60xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x5xf32>) -> tensor<1x3x60xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x5xf32>):
    %1 = "tensorop.reshape"(%0) {shape = [5, 1]} : (tensor<1x5xf32>) -> tensor<5x1xf32> loc("gather2")
    %2 = "tensorop.weight"() {key = "gather2.weight"} : () -> tensor<180x5x1x1xf32> loc("gather2")
    %3 = "tensorop.reshape"(%1) {shape = [1, 5, 1, 1]} : (tensor<5x1xf32>) -> tensor<1x5x1x1xf32> loc("gather2")
    %4 = "tensorop.conv"(%3, %2) {codegen.macs = 0} : (tensor<1x5x1x1xf32>, tensor<180x5x1x1xf32>) -> tensor<1x180x1x1xf32> loc("gather2")
    %5 = "tensorop.reshape"(%4) {shape = [180, 1]} : (tensor<1x180x1x1xf32>) -> tensor<180x1xf32> loc("gather2")
    %6 = "tensorop.reshape"(%5) {shape = [1, 3, 60], source.tensor = "gather2.out"} : (tensor<180x1xf32>) -> tensor<1x3x60xf32> loc("gather2")
    "func.return"(%6) : (tensor<1x3x60xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
