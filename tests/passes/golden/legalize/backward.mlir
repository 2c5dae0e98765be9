// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x6x5xf32>) -> (tensor<1x6x5xf32>, tensor<1x2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x6x5xf32>):
    %1 = "tensorop.slice"(%0) {ends = [1, -1, 5], source.tensor = "slice1.out", starts = [0, 5, 0], steps = [1, -1, 1]} : (tensor<1x6x5xf32>) -> tensor<1x6x5xf32> loc("slice1")
    %2 = "tensorop.slice"(%0) {ends = [1, 5, 0], source.tensor = "slice2.out", starts = [0, 1, 4], steps = [1, 2, -2]} : (tensor<1x6x5xf32>) -> tensor<1x2x2xf32> loc("slice2")
    "func.return"(%1, %2) : (tensor<1x6x5xf32>, tensor<1x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x6x5xf32>) -> (tensor<1x6x5xf32>, tensor<1x2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x6x5xf32>):
    %1 = "tensorop.slice"(%0) {ends = [1, 6, 5], starts = [0, 5, 0], steps = [1, 1, 1]} : (tensor<1x6x5xf32>) -> tensor<1x1x5xf32> loc("slice1")
    %2 = "tensorop.slice"(%0) {ends = [1, 5, 5], starts = [0, 4, 0], steps = [1, 1, 1]} : (tensor<1x6x5xf32>) -> tensor<1x1x5xf32> loc("slice1")
    %3 = "tensorop.slice"(%0) {ends = [1, 4, 5], starts = [0, 3, 0], steps = [1, 1, 1]} : (tensor<1x6x5xf32>) -> tensor<1x1x5xf32> loc("slice1")
    %4 = "tensorop.slice"(%0) {ends = [1, 3, 5], starts = [0, 2, 0], steps = [1, 1, 1]} : (tensor<1x6x5xf32>) -> tensor<1x1x5xf32> loc("slice1")
    %5 = "tensorop.slice"(%0) {ends = [1, 2, 5], starts = [0, 1, 0], steps = [1, 1, 1]} : (tensor<1x6x5xf32>) -> tensor<1x1x5xf32> loc("slice1")
    %6 = "tensorop.slice"(%0) {ends = [1, 1, 5], starts = [0, 0, 0], steps = [1, 1, 1]} : (tensor<1x6x5xf32>) -> tensor<1x1x5xf32> loc("slice1")
    %7 = "tensorop.concat"(%1, %2, %3, %4, %5, %6) {axis = 1, source.tensor = "slice1.out"} : (tensor<1x1x5xf32>, tensor<1x1x5xf32>, tensor<1x1x5xf32>, tensor<1x1x5xf32>, tensor<1x1x5xf32>, tensor<1x1x5xf32>) -> tensor<1x6x5xf32> loc("slice1")
    %8 = "tensorop.slice"(%0) {ends = [1, 5, 5], starts = [0, 1, 0], steps = [1, 2, 1]} : (tensor<1x6x5xf32>) -> tensor<1x2x5xf32> loc("slice2")
    %9 = "tensorop.slice"(%8) {ends = [1, 2, 5], starts = [0, 0, 4], steps = [1, 1, 1]} : (tensor<1x2x5xf32>) -> tensor<1x2x1xf32> loc("slice2")
    %10 = "tensorop.slice"(%8) {ends = [1, 2, 3], starts = [0, 0, 2], steps = [1, 1, 1]} : (tensor<1x2x5xf32>) -> tensor<1x2x1xf32> loc("slice2")
    %11 = "tensorop.concat"(%9, %10) {axis = 2, source.tensor = "slice2.out"} : (tensor<1x2x1xf32>, tensor<1x2x1xf32>) -> tensor<1x2x2xf32> loc("slice2")
    "func.return"(%7, %11) : (tensor<1x6x5xf32>, tensor<1x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
