// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>):
    %1 = "tensorop.cumulate"(%0) {axis = 2, exclusive = true, method = "sum", reverse = true, source.tensor = "cumulate1.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("cumulate1")
    %2 = "tensorop.cumulate"(%0) {axis = 1, method = "sum", source.tensor = "cumulate2.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("cumulate2")
    "func.return"(%2, %1) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>):
    %1 = "tensorop.reshape"(%0) {shape = [6, 4]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32> loc("cumulate1")
    %2 = "tensorop.weight"() {key = "cumulate1.ones"} : () -> tensor<4x4xf32> loc("cumulate1")
    %3 = "tensorop.matmul"(%1, %2) {codegen.macs = 0} : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32> loc("cumulate1")
    %4 = "tensorop.reshape"(%3) {shape = [2, 3, 4], source.tensor = "cumulate1.out"} : (tensor<6x4xf32>) -> tensor<2x3x4xf32> loc("cumulate1")
    %5 = "tensorop.permute"(%0) {order = [0, 2, 1]} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32> loc("cumulate2")
    %6 = "tensorop.reshape"(%5) {shape = [8, 3]} : (tensor<2x4x3xf32>) -> tensor<8x3xf32> loc("cumulate2")
    %7 = "tensorop.weight"() {key = "cumulate2.ones"} : () -> tensor<3x3xf32> loc("cumulate2")
    %8 = "tensorop.matmul"(%6, %7) {codegen.macs = 0} : (tensor<8x3xf32>, tensor<3x3xf32>) -> tensor<8x3xf32> loc("cumulate2")
    %9 = "tensorop.reshape"(%8) {shape = [2, 4, 3]} : (tensor<8x3xf32>) -> tensor<2x4x3xf32> loc("cumulate2")
    %10 = "tensorop.permute"(%9) {order = [0, 2, 1], source.tensor = "cumulate2.out"} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32> loc("cumulate2")
    "func.return"(%10, %4) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
