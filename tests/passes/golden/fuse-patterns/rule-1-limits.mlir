// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.max"(%1, %0) {source.tensor = "max2.out"} : (tensor<1xf32>, tensor<1x4xf32>) -> tensor<1x4xf32> loc("max2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<4xf32>
    %4 = "tensorop.min"(%0, %3) {source.tensor = "min4.out"} : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32> loc("min4")
    %5 = "tensorop.abs"(%0) {source.tensor = "abs5.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("abs5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<1xf32>
    %7 = "tensorop.max"(%5, %6) {source.tensor = "max7.out"} : (tensor<1x4xf32>, tensor<1xf32>) -> tensor<1x4xf32> loc("max7")
    "func.return"(%2, %4, %7) : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fuse-patterns
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.clip"(%0) {min = -1.0, source.tensor = "max2.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("max2")
    %2 = "tensorop.clip"(%0) {max = 2.0, source.tensor = "min4.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("min4")
    %3 = "tensorop.abs"(%0) {source.tensor = "abs5.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("abs5")
    %4 = "tensorop.relu"(%3) {source.tensor = "max7.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("max7")
    "func.return"(%1, %2, %4) : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
