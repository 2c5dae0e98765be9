// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("relu1")
    %2 = "tensorop.relu"(%1) {source.tensor = "relu2.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("relu2")
    %3 = "tensorop.sigmoid"(%0) {source.tensor = "sigmoid3.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("sigmoid3")
    %4 = "tensorop.relu"(%3) {source.tensor = "relu4.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("relu4")
    %5 = "tensorop.floor"(%0) {source.tensor = "floor5.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("floor5")
    %6 = "tensorop.floor"(%5) {source.tensor = "floor6.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc("floor6")
    "func.return"(%2, %4, %6) : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after remove-identity
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4xf32>):
    %1 = "tensorop.relu"(%0) {source.tensor = "relu1.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc(fused["relu1", "relu2"])
    %2 = "tensorop.sigmoid"(%0) {source.tensor = "sigmoid3.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc(fused["sigmoid3", "relu4"])
    %3 = "tensorop.floor"(%0) {source.tensor = "floor5.out"} : (tensor<1x4xf32>) -> tensor<1x4xf32> loc(fused["floor5", "floor6"])
    "func.return"(%1, %2, %3) : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
