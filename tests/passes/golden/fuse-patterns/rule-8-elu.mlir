// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>, %1: tensor<2x3x4xf32>, %2: tensor<2x3x4xf32>):
    %3 = "tensorop.exp"(%0) {source.tensor = "exp1.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("exp1")
    %4 = "tensorop.weight"() {key = "w2"} : () -> tensor<1xf32>
    %5 = "tensorop.sub"(%3, %4) {source.tensor = "sub3.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xf32> loc("sub3")
    %6 = "tensorop.weight"() {key = "w4"} : () -> tensor<1xf32>
    %7 = "tensorop.mul"(%5, %6) {source.tensor = "mul5.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xf32> loc("mul5")
    %8 = "tensorop.weight"() {key = "w6"} : () -> tensor<1xf32>
    %9 = "tensorop.compare"(%0, %8) {method = "less", source.tensor = "compare7.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xi1> loc("compare7")
    %10 = "tensorop.where"(%9, %7, %0) {source.tensor = "where8.out"} : (tensor<2x3x4xi1>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("where8")
    %11 = "tensorop.exp"(%1) {source.tensor = "exp9.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("exp9")
    %12 = "tensorop.weight"() {key = "w10"} : () -> tensor<1xf32>
    %13 = "tensorop.mul"(%11, %12) {source.tensor = "mul11.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xf32> loc("mul11")
    %14 = "tensorop.weight"() {key = "w12"} : () -> tensor<1xf32>
    %15 = "tensorop.sub"(%13, %14) {source.tensor = "sub13.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xf32> loc("sub13")
    %16 = "tensorop.weight"() {key = "w14"} : () -> tensor<1xf32>
    %17 = "tensorop.compare"(%1, %16) {method = "greater", source.tensor = "compare15.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xi1> loc("compare15")
    %18 = "tensorop.weight"() {key = "w16"} : () -> tensor<1xf32>
    %19 = "tensorop.mul"(%1, %18) {source.tensor = "mul17.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xf32> loc("mul17")
    %20 = "tensorop.where"(%17, %19, %15) {source.tensor = "where18.out"} : (tensor<2x3x4xi1>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("where18")
    %21 = "tensorop.weight"() {key = "w19"} : () -> tensor<1xf32>
    %22 = "tensorop.compare"(%2, %21) {method = "less", source.tensor = "compare20.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xi1> loc("compare20")
    %23 = "tensorop.exp"(%2) {source.tensor = "exp21.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("exp21")
    %24 = "tensorop.weight"() {key = "w22"} : () -> tensor<1xf32>
    %25 = "tensorop.sub"(%23, %24) {source.tensor = "sub23.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xf32> loc("sub23")
    %26 = "tensorop.where"(%22, %25, %2) {source.tensor = "where24.out"} : (tensor<2x3x4xi1>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("where24")
    "func.return"(%10, %20, %26) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fuse-patterns
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x4xf32>, %1: tensor<2x3x4xf32>, %2: tensor<2x3x4xf32>):
    %3 = "tensorop.elu"(%0) {alpha = 2.0, source.tensor = "where8.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc(fused["exp1", "sub3", "mul5", "compare7", "where8"])
    %4 = "tensorop.weight"() {key = "where18.factor"} : () -> tensor<1xf32> loc("where18")
    %5 = "tensorop.elu"(%1) {alpha = 1.2} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("where18")
    %6 = "tensorop.mul"(%5, %4) {source.tensor = "where18.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xf32> loc(fused["exp9", "mul11", "sub13", "compare15", "mul17", "where18"])
    %7 = "tensorop.weight"() {key = "w19"} : () -> tensor<1xf32>
    %8 = "tensorop.compare"(%2, %7) {method = "less", source.tensor = "compare20.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xi1> loc("compare20")
    %9 = "tensorop.exp"(%2) {source.tensor = "exp21.out"} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("exp21")
    %10 = "tensorop.weight"() {key = "w22"} : () -> tensor<1xf32>
    %11 = "tensorop.sub"(%9, %10) {source.tensor = "sub23.out"} : (tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3x4xf32> loc("sub23")
    %12 = "tensorop.where"(%8, %11, %2) {source.tensor = "where24.out"} : (tensor<2x3x4xi1>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("where24")
    "func.return"(%3, %6, %12) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
