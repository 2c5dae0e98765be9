// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<6x4xf32>) -> tensor<2x3x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<6x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x5xf32>
    %2 = "tensorop.matmul"(%0, %1) {source.tensor = "matmul2.out"} : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32> loc("matmul2")
    %3 = "tensorop.reshape"(%2) {shape = [2, 3, 5], source.tensor = "reshape3.out"} : (tensor<6x5xf32>) -> tensor<2x3x5xf32> loc("reshape3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<5xf32>
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<5xf32>
    %6 = "tensorop.scale"(%3, %4, %5) {axis = 2, source.tensor = "scale6.out"} : (tensor<2x3x5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32> loc("scale6")
    "func.return"(%6) : (tensor<2x3x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after move-scales
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<6x4xf32>) -> tensor<2x3x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<6x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x5xf32>
    %2 = "tensorop.matmul"(%0, %1) {source.tensor = "matmul2.out"} : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32> loc("matmul2")
    %3 = "tensorop.weight"() {key = "w4"} : () -> tensor<5xf32>
    %4 = "tensorop.weight"() {key = "w5"} : () -> tensor<5xf32>
    %5 = "tensorop.scale"(%2, %3, %4) : (tensor<6x5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<6x5xf32> loc("scale6")
    %6 = "tensorop.reshape"(%5) {shape = [2, 3, 5], source.tensor = "scale6.out"} : (tensor<6x5xf32>) -> tensor<2x3x5xf32> loc(fused["reshape3", "scale6"])
    "func.return"(%6) : (tensor<2x3x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
