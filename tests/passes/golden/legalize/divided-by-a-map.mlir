// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x6x4x5xf32>) -> tensor<1x6x4x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x6x4x5xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x5xf32>
    %2 = "tensorop.div"(%0, %1) {source.tensor = "div2.out"} : (tensor<1x6x4x5xf32>, tensor<4x5xf32>) -> tensor<1x6x4x5xf32> loc("div2")
    "func.return"(%2) : (tensor<1x6x4x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x6x4x5xf32>) -> tensor<1x6x4x5xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x6x4x5xf32>):
    %1 = "tensorop.weight"() {key = "div2.spread"} : () -> tensor<1x6x4x5xf32> loc("div2")
    %2 = "tensorop.mul"(%0, %1) {source.tensor = "div2.out"} : (tensor<1x6x4x5xf32>, tensor<1x6x4x5xf32>) -> tensor<1x6x4x5xf32> loc("div2")
    "func.return"(%2) : (tensor<1x6x4x5xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
