// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x5x6xf32>) -> tensor<1x3x12x11xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x5x6xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<4x3x1x2xf32>
    %2 = "tensorop.deconv"(%0, %1) {pads = [1, 0, 0, 1], source.tensor = "deconv2.out", strides = [3, 2]} : (tensor<1x4x5x6xf32>, tensor<4x3x1x2xf32>) -> tensor<1x3x12x11xf32> loc("deconv2")
    "func.return"(%2) : (tensor<1x3x12x11xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x5x6xf32>) -> tensor<1x3x12x11xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x5x6xf32>):
    %1 = "tensorop.weight"() {key = "deconv2.weight"} : () -> tensor<4x3x3x2xf32> loc("deconv2")
    %2 = "tensorop.deconv"(%0, %1) {codegen.macs = 720, pads = [1, 2, 0, 1], source.tensor = "deconv2.out", strides = [3, 2]} : (tensor<1x4x5x6xf32>, tensor<4x3x3x2xf32>) -> tensor<1x3x12x11xf32> loc("deconv2")
    "func.return"(%2) : (tensor<1x3x12x11xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
