// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x20x20xf32>, tensor<1x3x1x1xf32>, tensor<1x2xf32>) -> (tensor<1x3x20x20xf32>, tensor<1x526xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x20x20xf32>, %1: tensor<1x3x1x1xf32>, %2: tensor<1x2xf32>):
    %3 = "tensorop.add"(%0, %1) {source.tensor = "add1.out"} : (tensor<1x3x20x20xf32>, tensor<1x3x1x1xf32>) -> tensor<1x3x20x20xf32> loc("add1")
    %4 = "tensorop.tile"(%2) {reps = [1, 263], source.tensor = "tile2.out"} : (tensor<1x2xf32>) -> tensor<1x526xf32> loc("tile2")
    "func.return"(%3, %4) : (tensor<1x3x20x20xf32>, tensor<1x526xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x20x20xf32>, tensor<1x3x1x1xf32>, tensor<1x2xf32>) -> (tensor<1x3x20x20xf32>, tensor<1x526xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x20x20xf32>, %1: tensor<1x3x1x1xf32>, %2: tensor<1x2xf32>):
    %3 = "tensorop.tile"(%1) {reps = [1, 1, 1, 20]} : (tensor<1x3x1x1xf32>) -> tensor<1x3x1x20xf32> loc("add1")
    %4 = "tensorop.tile"(%3) {reps = [1, 1, 20, 1]} : (tensor<1x3x1x20xf32>) -> tensor<1x3x20x20xf32> loc("add1")
    %5 = "tensorop.add"(%0, %4) {source.tensor = "add1.out"} : (tensor<1x3x20x20xf32>, tensor<1x3x20x20xf32>) -> tensor<1x3x20x20xf32> loc("add1")
    %6 = "tensorop.tile"(%2) {reps = [1, 12]} : (tensor<1x2xf32>) -> tensor<1x24xf32> loc("tile2")
    %7 = "tensorop.tile"(%6) {reps = [1, 22]} : (tensor<1x24xf32>) -> tensor<1x528xf32> loc("tile2")
    %8 = "tensorop.slice"(%7) {ends = [1, 526], source.tensor = "tile2.out", starts = [0, 0], steps = [1, 1]} : (tensor<1x528xf32>) -> tensor<1x526xf32> loc("tile2")
    "func.return"(%5, %8) : (tensor<1x3x20x20xf32>, tensor<1x526xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
