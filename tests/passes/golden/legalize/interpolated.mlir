// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x5x6xf32>) -> (tensor<1x2x10x12xf32>, tensor<1x2x7x6xf32>, tensor<1x2x5x3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x5x6xf32>):
    %1 = "tensorop.resize"(%0) {mode = "linear", scales = [1.0, 1.0, 2.0, 2.0], sizes = [1, 2, 10, 12], source.tensor = "resize1.out"} : (tensor<1x2x5x6xf32>) -> tensor<1x2x10x12xf32> loc("resize1")
    %2 = "tensorop.resize"(%0) {coordinates = "align_corners", mode = "linear", scales = [1.0, 1.0, 1.4, 1.0], sizes = [1, 2, 7, 6], source.tensor = "resize2.out"} : (tensor<1x2x5x6xf32>) -> tensor<1x2x7x6xf32> loc("resize2")
    %3 = "tensorop.resize"(%0) {mode = "cubic", scales = [1.0, 1.0, 1.0, 0.5], sizes = [1, 2, 5, 3], source.tensor = "resize3.out"} : (tensor<1x2x5x6xf32>) -> tensor<1x2x5x3xf32> loc("resize3")
    "func.return"(%1, %2, %3) : (tensor<1x2x10x12xf32>, tensor<1x2x7x6xf32>, tensor<1x2x5x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x5x6xf32>) -> (tensor<1x2x10x12xf32>, tensor<1x2x7x6xf32>, tensor<1x2x5x3xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x5x6xf32>):
    %1 = "tensorop.weight"() {key = "resize1.axis2"} : () -> tensor<10x5x1x1xf32> loc("resize1")
    %2 = "tensorop.reshape"(%0) {shape = [2, 5, 1, 6]} : (tensor<1x2x5x6xf32>) -> tensor<2x5x1x6xf32> loc("resize1")
    %3 = "tensorop.conv"(%2, %1) {codegen.macs = 0} : (tensor<2x5x1x6xf32>, tensor<10x5x1x1xf32>) -> tensor<2x10x1x6xf32> loc("resize1")
    %4 = "tensorop.reshape"(%3) {shape = [1, 2, 10, 6]} : (tensor<2x10x1x6xf32>) -> tensor<1x2x10x6xf32> loc("resize1")
    %5 = "tensorop.weight"() {key = "resize1.axis3"} : () -> tensor<6x12xf32> loc("resize1")
    %6 = "tensorop.reshape"(%4) {shape = [20, 6]} : (tensor<1x2x10x6xf32>) -> tensor<20x6xf32> loc("resize1")
    %7 = "tensorop.matmul"(%6, %5) {codegen.macs = 0} : (tensor<20x6xf32>, tensor<6x12xf32>) -> tensor<20x12xf32> loc("resize1")
    %8 = "tensorop.reshape"(%7) {shape = [1, 2, 10, 12], source.tensor = "resize1.out"} : (tensor<20x12xf32>) -> tensor<1x2x10x12xf32> loc("resize1")
    %9 = "tensorop.weight"() {key = "resize2.axis2"} : () -> tensor<7x5x1x1xf32> loc("resize2")
    %10 = "tensorop.reshape"(%0) {shape = [2, 5, 1, 6]} : (tensor<1x2x5x6xf32>) -> tensor<2x5x1x6xf32> loc("resize2")
    %11 = "tensorop.conv"(%10, %9) {codegen.macs = 0} : (tensor<2x5x1x6xf32>, tensor<7x5x1x1xf32>) -> tensor<2x7x1x6xf32> loc("resize2")
    %12 = "tensorop.reshape"(%11) {shape = [1, 2, 7, 6], source.tensor = "resize2.out"} : (tensor<2x7x1x6xf32>) -> tensor<1x2x7x6xf32> loc("resize2")
    %13 = "tensorop.weight"() {key = "resize3.axis3"} : () -> tensor<6x3xf32> loc("resize3")
    %14 = "tensorop.reshape"(%0) {shape = [10, 6]} : (tensor<1x2x5x6xf32>) -> tensor<10x6xf32> loc("resize3")
    %15 = "tensorop.matmul"(%14, %13) {codegen.macs = 0} : (tensor<10x6xf32>, tensor<6x3xf32>) -> tensor<10x3xf32> loc("resize3")
    %16 = "tensorop.reshape"(%15) {shape = [1, 2, 5, 3], source.tensor = "resize3.out"} : (tensor<10x3xf32>) -> tensor<1x2x5x3xf32> loc("resize3")
    "func.return"(%8, %12, %16) : (tensor<1x2x10x12xf32>, tensor<1x2x7x6xf32>, tensor<1x2x5x3xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
