// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x5x2xf32>) -> tensor<2x1x2xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x5x2xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x1x2xi64>
    %2 = "tensorop.gather_elements"(%0, %1) {axis = 1, source.tensor = "gather_elements2.out"} : (tensor<2x5x2xf32>, tensor<2x1x2xi64>) -> tensor<2x1x2xf32> loc("gather_elements2")
    "func.return"(%2) : (tensor<2x1x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x5x2xf32>) -> tensor<2x1x2xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x5x2xf32>):
    %1 = "tensorop.weight"() {key = "gather_elements2.factors"} : () -> tensor<2x5x2xf32> loc("gather_elements2")
    %2 = "tensorop.mul"(%0, %1) : (tensor<2x5x2xf32>, tensor<2x5x2xf32>) -> tensor<2x5x2xf32> loc("gather_elements2")
    %3 = "tensorop.reshape"(%2) {shape = [2, 5, 1, 2]} : (tensor<2x5x2xf32>) -> tensor<2x5x1x2xf32> loc("gather_elements2")
    %4 = "tensorop.weight"() {key = "gather_elements2.ones"} : () -> tensor<1x5x1x1xf32> loc("gather_elements2")
    %5 = "tensorop.conv"(%3, %4) {codegen.macs = 0} : (tensor<2x5x1x2xf32>, tensor<1x5x1x1xf32>) -> tensor<2x1x1x2xf32> loc("gather_elements2")
    %6 = "tensorop.reshape"(%5) {shape = [2, 1, 2], source.tensor = "gather_elements2.out"} : (tensor<2x1x1x2xf32>) -> tensor<2x1x2xf32> loc("gather_elements2")
    "func.return"(%6) : (tensor<2x1x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
