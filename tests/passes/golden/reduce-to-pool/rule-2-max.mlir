// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x3xi8>) -> (tensor<1x4x1x1xi8>, tensor<1x4x1x1xi8>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x3xi8>):
    %1 = "tensorop.reduce"(%0) {axes = [2, 3], method = "max", source.tensor = "reduce1.out"} : (tensor<1x4x2x3xi8>) -> tensor<1x4x1x1xi8> loc("reduce1")
    %2 = "tensorop.reduce"(%0) {axes = [2, 3], method = "sum", source.tensor = "reduce2.out"} : (tensor<1x4x2x3xi8>) -> tensor<1x4x1x1xi8> loc("reduce2")
    "func.return"(%1, %2) : (tensor<1x4x1x1xi8>, tensor<1x4x1x1xi8>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after reduce-to-pool
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x3xi8>) -> (tensor<1x4x1x1xi8>, tensor<1x4x1x1xi8>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x3xi8>):
    %1 = "tensorop.max_pool"(%0) {kernel = [2, 3], source.tensor = "reduce1.out"} : (tensor<1x4x2x3xi8>) -> tensor<1x4x1x1xi8> loc("reduce1")
    %2 = "tensorop.reduce"(%0) {axes = [2, 3], method = "sum", source.tensor = "reduce2.out"} : (tensor<1x4x2x3xi8>) -> tensor<1x4x1x1xi8> loc("reduce2")
    "func.return"(%1, %2) : (tensor<1x4x1x1xi8>, tensor<1x4x1x1xi8>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
