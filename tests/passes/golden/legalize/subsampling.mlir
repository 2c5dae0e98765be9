// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x7x8xf32>) -> (tensor<1x3x4x4xf32>, tensor<1x3x3x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x7x8xf32>):
    %1 = "tensorop.max_pool"(%0) {kernel = [1, 1], source.tensor = "max_pool1.out", strides = [2, 2]} : (tensor<1x3x7x8xf32>) -> tensor<1x3x4x4xf32> loc("max_pool1")
    %2 = "tensorop.avg_pool"(%0) {ceil_mode = true, kernel = [1, 1], source.tensor = "avg_pool2.out", strides = [3, 2]} : (tensor<1x3x7x8xf32>) -> tensor<1x3x3x4xf32> loc("avg_pool2")
    "func.return"(%1, %2) : (tensor<1x3x4x4xf32>, tensor<1x3x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x7x8xf32>) -> (tensor<1x3x4x4xf32>, tensor<1x3x3x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x7x8xf32>):
    %1 = "tensorop.slice"(%0) {ends = [1, 3, 7, 7], source.tensor = "max_pool1.out", starts = [0, 0, 0, 0], steps = [1, 1, 2, 2]} : (tensor<1x3x7x8xf32>) -> tensor<1x3x4x4xf32> loc("max_pool1")
    %2 = "tensorop.slice"(%0) {ends = [1, 3, 7, 7], source.tensor = "avg_pool2.out", starts = [0, 0, 0, 0], steps = [1, 1, 3, 2]} : (tensor<1x3x7x8xf32>) -> tensor<1x3x3x4xf32> loc("avg_pool2")
    "func.return"(%1, %2) : (tensor<1x3x4x4xf32>, tensor<1x3x3x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
