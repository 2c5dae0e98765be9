// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.compare"(%0, %1) {method = "greater_equal", source.tensor = "compare2.out"} : (tensor<1x3x4xf32>, tensor<1xf32>) -> tensor<1x3x4xi1> loc("compare2")
    %3 = "tensorop.cast"(%2) {dtype = "f32", source.tensor = "cast3.out"} : (tensor<1x3x4xi1>) -> tensor<1x3x4xf32> loc("cast3")
    "func.return"(%3) : (tensor<1x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after fuse-thresholds
// unchanged
