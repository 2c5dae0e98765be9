// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x6x4x5xf32>, tensor<1x1x4x5xf32>) -> tensor<1x6x4x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x6x4x5xf32>, %1: tensor<1x1x4x5xf32>):
    %2 = "tensorop.mul"(%0, %1) {source.tensor = "mul1.out"} : (tensor<1x6x4x5xf32>, tensor<1x1x4x5xf32>) -> tensor<1x6x4x5xf32> loc("mul1")
    "func.return"(%2) : (tensor<1x6x4x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x6x4x5xf32>, tensor<1x1x4x5xf32>) -> tensor<1x6x4x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x6x4x5xf32>, %1: tensor<1x1x4x5xf32>):
    %2 = "tensorop.tile"(%1) {reps = [1, 6, 1, 1]} : (tensor<1x1x4x5xf32>) -> tensor<1x6x4x5xf32> loc("mul1")
    %3 = "tensorop.mul"(%0, %2) {source.tensor = "mul1.out"} : (tensor<1x6x4x5xf32>, tensor<1x6x4x5xf32>) -> tensor<1x6x4x5xf32> loc("mul1")
    "func.return"(%3) : (tensor<1x6x4x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
