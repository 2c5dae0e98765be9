// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x8x5xf32>) -> (tensor<1x2x3x5xf32>, tensor<1x8xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x8x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x3xi64>
    %2 = "tensorop.gather"(%0, %1) {axis = 1, source.tensor = "gather2.out"} : (tensor<1x8x5xf32>, tensor<2x3xi64>) -> tensor<1x2x3x5xf32> loc("gather2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<i64>
    %4 = "tensorop.gather"(%0, %3) {axis = 2, source.tensor = "gather4.out"} : (tensor<1x8x5xf32>, tensor<i64>) -> tensor<1x8xf32> loc("gather4")
    "func.return"(%2, %4) : (tensor<1x2x3x5xf32>, tensor<1x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x8x5xf32>) -> (tensor<1x2x3x5xf32>, tensor<1x8xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x8x5xf32>):
    %1 = "tensorop.slice"(%0) {ends = [1, 5, 5], starts = [0, 0, 0], steps = [1, 2, 1]} : (tensor<1x8x5xf32>) -> tensor<1x3x5xf32> loc("gather2")
    %2 = "tensorop.slice"(%0) {ends = [1, 4, 5], starts = [0, 7, 0], steps = [1, -1, 1]} : (tensor<1x8x5xf32>) -> tensor<1x3x5xf32> loc("gather2")
    %3 = "tensorop.concat"(%1, %2) {axis = 1} : (tensor<1x3x5xf32>, tensor<1x3x5xf32>) -> tensor<1x6x5xf32> loc("gather2")
    %4 = "tensorop.reshape"(%3) {shape = [1, 2, 3, 5], source.tensor = "gather2.out"} : (tensor<1x6x5xf32>) -> tensor<1x2x3x5xf32> loc("gather2")
    %5 = "tensorop.slice"(%0) {ends = [1, 8, 4], starts = [0, 0, 3], steps = [1, 1, 1]} : (tensor<1x8x5xf32>) -> tensor<1x8x1xf32> loc("gather4")
    %6 = "tensorop.reshape"(%5) {shape = [1, 8], source.tensor = "gather4.out"} : (tensor<1x8x1xf32>) -> tensor<1x8xf32> loc("gather4")
    "func.return"(%4, %6) : (tensor<1x2x3x5xf32>, tensor<1x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
