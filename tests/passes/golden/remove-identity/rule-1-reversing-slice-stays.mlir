// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> tensor<1x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.slice"(%0) {ends = [1, -1], source.tensor = "slice1.out", starts = [0, 3], steps = [1, -1]} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("slice1")
    "func.return"(%1) : (tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after remove-identity
// unchanged
