// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.compare"(%0, %1) {method = "greater", source.tensor = "compare2.out"} : (tensor<1x3x4xf32>, tensor<1xf32>) -> tensor<1x3x4xi1> loc("compare2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<1xf32>
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<1xf32>
    %5 = "tensorop.where"(%2, %3, %4) {source.tensor = "where5.out"} : (tensor<1x3x4xi1>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x3x4xf32> loc("where5")
    "func.return"(%5) : (tensor<1x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after fuse-thresholds
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4xf32>):
    %1 = "tensorop.threshold"(%0) {source.tensor = "where5.out", threshold = 0.5} : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32> loc(fused["compare2", "where5"])
    "func.return"(%1) : (tensor<1x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
