// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x6x9xui8>) -> tensor<1x3x2x6xui8>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x6x9xui8>):
    %1 = "tensorop.resize"(%0) {rounding = "round_prefer_ceil", scales = [1.0, 1.0, 0.3333333333333333, 0.6666666666666666], sizes = [1, 3, 2, 6], source.tensor = "resize1.out"} : (tensor<1x3x6x9xui8>) -> tensor<1x3x2x6xui8> loc("resize1")
    "func.return"(%1) : (tensor<1x3x2x6xui8>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x6x9xui8>) -> tensor<1x3x2x6xui8>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x6x9xui8>):
    %1 = "tensorop.slice"(%0) {ends = [1, 3, 5, 9], starts = [0, 0, 1, 0], steps = [1, 1, 3, 1]} : (tensor<1x3x6x9xui8>) -> tensor<1x3x2x9xui8> loc("resize1")
    %2 = "tensorop.slice"(%1) {ends = [1, 3, 2, 3], starts = [0, 0, 0, 0], steps = [1, 1, 1, 2]} : (tensor<1x3x2x9xui8>) -> tensor<1x3x2x2xui8> loc("resize1")
    %3 = "tensorop.slice"(%1) {ends = [1, 3, 2, 6], starts = [0, 0, 0, 3], steps = [1, 1, 1, 2]} : (tensor<1x3x2x9xui8>) -> tensor<1x3x2x2xui8> loc("resize1")
    %4 = "tensorop.slice"(%1) {ends = [1, 3, 2, 9], starts = [0, 0, 0, 6], steps = [1, 1, 1, 2]} : (tensor<1x3x2x9xui8>) -> tensor<1x3x2x2xui8> loc("resize1")
    %5 = "tensorop.concat"(%2, %3, %4) {axis = 3, source.tensor = "resize1.out"} : (tensor<1x3x2x2xui8>, tensor<1x3x2x2xui8>, tensor<1x3x2x2xui8>) -> tensor<1x3x2x6xui8> loc("resize1")
    "func.return"(%5) : (tensor<1x3x2x6xui8>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
