// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x1x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x1x4xf32>, %1: tensor<2x3x4xf32>):
    %2 = "tensorop.sigmoid"(%0) {source.tensor = "sigmoid1.out"} : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32> loc("sigmoid1")
    %3 = "tensorop.weight"() {key = "w2"} : () -> tensor<1xf32>
    %4 = "tensorop.add"(%2, %3) {source.tensor = "add3.out"} : (tensor<2x1x4xf32>, tensor<1xf32>) -> tensor<2x1x4xf32> loc("add3")
    %5 = "tensorop.div"(%1, %4) {source.tensor = "div4.out"} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32> loc("div4")
    "func.return"(%5) : (tensor<2x3x4xf32>) -> ()
  }) {tensorop.input_names = ["b", "data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x1x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<2x1x4xf32>, %1: tensor<2x3x4xf32>):
    %2 = "tensorop.sigmoid"(%0) {source.tensor = "sigmoid1.out"} : (tensor<2x1x4xf32>) -> tensor<2x1x4xf32> loc("sigmoid1")
    %3 = "tensorop.weight"() {key = "w2"} : () -> tensor<1xf32>
    %4 = "tensorop.add"(%2, %3) {source.tensor = "add3.out"} : (tensor<2x1x4xf32>, tensor<1xf32>) -> tensor<2x1x4xf32> loc("add3")
    %5 = "tensorop.weight"() {key = "div4.number"} : () -> tensor<1x1x1xf32> loc("div4")
    %6 = "tensorop.div"(%5, %4) : (tensor<1x1x1xf32>, tensor<2x1x4xf32>) -> tensor<2x1x4xf32> loc("div4")
    %7 = "tensorop.tile"(%6) {reps = [1, 3, 1]} : (tensor<2x1x4xf32>) -> tensor<2x3x4xf32> loc("div4")
    %8 = "tensorop.mul"(%1, %7) {source.tensor = "div4.out"} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("div4")
    "func.return"(%8) : (tensor<2x3x4xf32>) -> ()
  }) {tensorop.input_names = ["b", "data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
