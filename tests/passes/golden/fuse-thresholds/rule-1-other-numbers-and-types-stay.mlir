// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4xf32>) -> (tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xi1>, tensor<1x3x4xi8>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.compare"(%0, %1) {method = "less", source.tensor = "compare2.out"} : (tensor<1x3x4xf32>, tensor<1xf32>) -> tensor<1x3x4xi1> loc("compare2")
    %3 = "tensorop.cast"(%2) {dtype = "f32", source.tensor = "cast3.out"} : (tensor<1x3x4xi1>) -> tensor<1x3x4xf32> loc("cast3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<1x3x1xf32>
    %5 = "tensorop.compare"(%0, %4) {method = "greater", source.tensor = "compare5.out"} : (tensor<1x3x4xf32>, tensor<1x3x1xf32>) -> tensor<1x3x4xi1> loc("compare5")
    %6 = "tensorop.cast"(%5) {dtype = "f32", source.tensor = "cast6.out"} : (tensor<1x3x4xi1>) -> tensor<1x3x4xf32> loc("cast6")
    %7 = "tensorop.weight"() {key = "w7"} : () -> tensor<1xf32>
    %8 = "tensorop.compare"(%0, %7) {method = "greater", source.tensor = "compare8.out"} : (tensor<1x3x4xf32>, tensor<1xf32>) -> tensor<1x3x4xi1> loc("compare8")
    %9 = "tensorop.weight"() {key = "w9"} : () -> tensor<1xf32>
    %10 = "tensorop.compare"(%0, %9) {method = "greater", source.tensor = "compare10.out"} : (tensor<1x3x4xf32>, tensor<1xf32>) -> tensor<1x3x4xi1> loc("compare10")
    %11 = "tensorop.cast"(%10) {dtype = "i8", source.tensor = "cast11.out"} : (tensor<1x3x4xi1>) -> tensor<1x3x4xi8> loc("cast11")
    %12 = "tensorop.cast"(%8) {dtype = "f32", source.tensor = "cast12.out"} : (tensor<1x3x4xi1>) -> tensor<1x3x4xf32> loc("cast12")
    "func.return"(%3, %6, %12, %8, %11) : (tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>, tensor<1x3x4xi1>, tensor<1x3x4xi8>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3", "out4"]} : () -> ()
}) : () -> ()

// after fuse-thresholds
// unchanged
