// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4xf32>) -> (tensor<1x3x4xf32>, tensor<1x3x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.compare"(%0, %1) {method = "greater_equal", source.tensor = "compare2.out"} : (tensor<1x3x4xf32>, tensor<1xf32>) -> tensor<1x3x4xi1> loc("compare2")
    %3 = "tensorop.cast"(%2) {dtype = "f32", source.tensor = "cast3.out"} : (tensor<1x3x4xi1>) -> tensor<1x3x4xf32> loc("cast3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<1xf32>
    %5 = "tensorop.compare"(%4, %0) {method = "less_equal", source.tensor = "compare5.out"} : (tensor<1xf32>, tensor<1x3x4xf32>) -> tensor<1x3x4xi1> loc("compare5")
    %6 = "tensorop.cast"(%5) {dtype = "f32", source.tensor = "cast6.out"} : (tensor<1x3x4xi1>) -> tensor<1x3x4xf32> loc("cast6")
    "func.return"(%3, %6) : (tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-thresholds
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4xf32>) -> (tensor<1x3x4xf32>, tensor<1x3x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4xf32>):
    %1 = "tensorop.threshold"(%0) {source.tensor = "cast3.out", threshold = 0.4999999701976776} : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32> loc(fused["compare2", "cast3"])
    %2 = "tensorop.threshold"(%0) {source.tensor = "cast6.out", threshold = -2.000000238418579} : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32> loc(fused["compare5", "cast6"])
    "func.return"(%1, %2) : (tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
