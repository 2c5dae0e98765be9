// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x6xf32>) -> tensor<1x3x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x6xf32>):
    %1 = "tensorop.reshape"(%0) {shape = [1, 12], source.tensor = "reshape1.out"} : (tensor<1x2x6xf32>) -> tensor<1x12xf32> loc("reshape1")
    %2 = "tensorop.reshape"(%1) {shape = [1, 3, 4], source.tensor = "reshape2.out"} : (tensor<1x12xf32>) -> tensor<1x3x4xf32> loc("reshape2")
    "func.return"(%2) : (tensor<1x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after merge-reshapes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x6xf32>) -> tensor<1x3x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x6xf32>):
    %1 = "tensorop.reshape"(%0) {shape = [1, 3, 4], source.tensor = "reshape2.out"} : (tensor<1x2x6xf32>) -> tensor<1x3x4xf32> loc(fused["reshape1", "reshape2"])
    "func.return"(%1) : (tensor<1x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
