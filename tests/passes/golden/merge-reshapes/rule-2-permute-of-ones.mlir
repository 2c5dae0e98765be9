// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x5x1x1xf32>, tensor<1x5x2x1xf32>) -> (tensor<1x1x1x5xf32>, tensor<1x2x1x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x5x1x1xf32>, %1: tensor<1x5x2x1xf32>):
    %2 = "tensorop.permute"(%0) {order = [0, 2, 3, 1], source.tensor = "permute1.out"} : (tensor<1x5x1x1xf32>) -> tensor<1x1x1x5xf32> loc("permute1")
    %3 = "tensorop.permute"(%1) {order = [0, 2, 3, 1], source.tensor = "permute2.out"} : (tensor<1x5x2x1xf32>) -> tensor<1x2x1x5xf32> loc("permute2")
    "func.return"(%2, %3) : (tensor<1x1x1x5xf32>, tensor<1x2x1x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after merge-reshapes
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x5x1x1xf32>, tensor<1x5x2x1xf32>) -> (tensor<1x1x1x5xf32>, tensor<1x2x1x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x5x1x1xf32>, %1: tensor<1x5x2x1xf32>):
    %2 = "tensorop.reshape"(%0) {shape = [1, 1, 1, 5], source.tensor = "permute1.out"} : (tensor<1x5x1x1xf32>) -> tensor<1x1x1x5xf32> loc("permute1")
    %3 = "tensorop.permute"(%1) {order = [0, 2, 3, 1], source.tensor = "permute2.out"} : (tensor<1x5x2x1xf32>) -> tensor<1x2x1x5xf32> loc("permute2")
    "func.return"(%2, %3) : (tensor<1x1x1x5xf32>, tensor<1x2x1x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
