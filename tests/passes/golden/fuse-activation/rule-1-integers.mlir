// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xi8>) -> (tensor<1x3x4x4xi8>, tensor<1x2x4x4xi8>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xi8>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x2x1x1xi8>
    %2 = "tensorop.conv"(%0, %1) {rshift = 7, source.tensor = "conv2.out"} : (tensor<1x2x4x4xi8>, tensor<3x2x1x1xi8>) -> tensor<1x3x4x4xi8> loc("conv2")
    %3 = "tensorop.relu"(%2) {source.tensor = "relu3.out"} : (tensor<1x3x4x4xi8>) -> tensor<1x3x4x4xi8> loc("relu3")
    %4 = "tensorop.add"(%0, %0) {source.tensor = "add4.out"} : (tensor<1x2x4x4xi8>, tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xi8> loc("add4")
    %5 = "tensorop.relu"(%4) {source.tensor = "relu5.out"} : (tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xi8> loc("relu5")
    "func.return"(%3, %5) : (tensor<1x3x4x4xi8>, tensor<1x2x4x4xi8>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-activation
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4x4xi8>) -> (tensor<1x3x4x4xi8>, tensor<1x2x4x4xi8>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4x4xi8>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<3x2x1x1xi8>
    %2 = "tensorop.conv"(%0, %1) {activation = "relu", rshift = 7, source.tensor = "relu3.out"} : (tensor<1x2x4x4xi8>, tensor<3x2x1x1xi8>) -> tensor<1x3x4x4xi8> loc(fused["conv2", "relu3"])
    %3 = "tensorop.add"(%0, %0) {activation = "relu", source.tensor = "relu5.out"} : (tensor<1x2x4x4xi8>, tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xi8> loc(fused["add4", "relu5"])
    "func.return"(%2, %3) : (tensor<1x3x4x4xi8>, tensor<1x2x4x4xi8>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
