// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x3x4xf32>) -> tensor<1x4x3x2xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x3x4xf32>):
    %1 = "tensorop.permute"(%0) {order = [0, 2, 3, 1], source.tensor = "permute1.out"} : (tensor<1x2x3x4xf32>) -> tensor<1x3x4x2xf32> loc("permute1")
    %2 = "tensorop.permute"(%1) {order = [0, 2, 1, 3], source.tensor = "permute2.out"} : (tensor<1x3x4x2xf32>) -> tensor<1x4x3x2xf32> loc("permute2")
    "func.return"(%2) : (tensor<1x4x3x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after move-permutes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x3x4xf32>) -> tensor<1x4x3x2xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x3x4xf32>):
    %1 = "tensorop.permute"(%0) {order = [0, 3, 2, 1], source.tensor = "permute2.out"} : (tensor<1x2x3x4xf32>) -> tensor<1x4x3x2xf32> loc(fused["permute1", "permute2"])
    "func.return"(%1) : (tensor<1x4x3x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
