// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("relu1")
    %2 = "tensorop.weight"() {key = "w2"} : () -> tensor<2xf32>
    %3 = "tensorop.scale"(%1, %2) {source.tensor = "scale3.out"} : (tensor<1x2x4xf32>, tensor<2xf32>) -> tensor<1x2x4xf32> loc("scale3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<2xf32>
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<2xf32>
    %6 = "tensorop.scale"(%3, %4, %5) {source.tensor = "scale6.out"} : (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32> loc("scale6")
    "func.return"(%6) : (tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after remove-identity
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["relu1", "scale3", "scale6"])
    "func.return"(%1) : (tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
