// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x3x5xf32>, tensor<2x3x5xf32>, tensor<3x3xf32>, tensor<1x3xf32>) -> (tensor<4x3x5xf32>, tensor<3x3xf32>, tensor<2x3x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<4x3x5xf32>, %1: tensor<2x3x5xf32>, %2: tensor<3x3xf32>, %3: tensor<1x3xf32>):
    %4 = "tensorop.weight"() {key = "w1"} : () -> tensor<2x1xi64>
    %5 = "tensorop.weight"() {key = "w2"} : () -> tensor<1x3xi64>
    %6 = "tensorop.scatter_nd"(%0, %4, %1) {source.tensor = "scatter_nd3.out"} : (tensor<4x3x5xf32>, tensor<2x1xi64>, tensor<2x3x5xf32>) -> tensor<4x3x5xf32> loc("scatter_nd3")
    %7 = "tensorop.scatter_elements"(%2, %5, %3) {source.tensor = "scatter_elements4.out"} : (tensor<3x3xf32>, tensor<1x3xi64>, tensor<1x3xf32>) -> tensor<3x3xf32> loc("scatter_elements4")
    %8 = "tensorop.gather_nd"(%0, %4) {source.tensor = "gather_nd5.out"} : (tensor<4x3x5xf32>, tensor<2x1xi64>) -> tensor<2x3x5xf32> loc("gather_nd5")
    "func.return"(%6, %7, %8) : (tensor<4x3x5xf32>, tensor<3x3xf32>, tensor<2x3x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c", "d"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after legalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x3x5xf32>, tensor<2x3x5xf32>, tensor<3x3xf32>, tensor<1x3xf32>) -> (tensor<4x3x5xf32>, tensor<3x3xf32>, tensor<2x3x5xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<4x3x5xf32>, %1: tensor<2x3x5xf32>, %2: tensor<3x3xf32>, %3: tensor<1x3xf32>):
    %4 = "tensorop.reshape"(%0) {shape = [4, 15]} : (tensor<4x3x5xf32>) -> tensor<4x15xf32> loc("scatter_nd3")
    %5 = "tensorop.reshape"(%1) {shape = [2, 15]} : (tensor<2x3x5xf32>) -> tensor<2x15xf32> loc("scatter_nd3")
    %6 = "tensorop.concat"(%4, %5) {axis = 0} : (tensor<4x15xf32>, tensor<2x15xf32>) -> tensor<6x15xf32> loc("scatter_nd3")
    %7 = "tensorop.weight"() {key = "scatter_nd3.weight"} : () -> tensor<4x6x1x1xf32> loc("scatter_nd3")
    %8 = "tensorop.reshape"(%6) {shape = [1, 6, 1, 15]} : (tensor<6x15xf32>) -> tensor<1x6x1x15xf32> loc("scatter_nd3")
    %9 = "tensorop.conv"(%8, %7) {codegen.macs = 0} : (tensor<1x6x1x15xf32>, tensor<4x6x1x1xf32>) -> tensor<1x4x1x15xf32> loc("scatter_nd3")
    %10 = "tensorop.reshape"(%9) {shape = [4, 15]} : (tensor<1x4x1x15xf32>) -> tensor<4x15xf32> loc("scatter_nd3")
    %11 = "tensorop.reshape"(%10) {shape = [4, 3, 5], source.tensor = "scatter_nd3.out"} : (tensor<4x15xf32>) -> tensor<4x3x5xf32> loc("scatter_nd3")
    %12 = "tensorop.reshape"(%2) {shape = [9, 1]} : (tensor<3x3xf32>) -> tensor<9x1xf32> loc("scatter_elements4")
    %13 = "tensorop.reshape"(%3) {shape = [3, 1]} : (tensor<1x3xf32>) -> tensor<3x1xf32> loc("scatter_elements4")
    %14 = "tensorop.concat"(%12, %13) {axis = 0} : (tensor<9x1xf32>, tensor<3x1xf32>) -> tensor<12x1xf32> loc("scatter_elements4")
    %15 = "tensorop.weight"() {key = "scatter_elements4.weight"} : () -> tensor<9x12x1x1xf32> loc("scatter_elements4")
    %16 = "tensorop.reshape"(%14) {shape = [1, 12, 1, 1]} : (tensor<12x1xf32>) -> tensor<1x12x1x1xf32> loc("scatter_elements4")
    %17 = "tensorop.conv"(%16, %15) {codegen.macs = 0} : (tensor<1x12x1x1xf32>, tensor<9x12x1x1xf32>) -> tensor<1x9x1x1xf32> loc("scatter_elements4")
    %18 = "tensorop.reshape"(%17) {shape = [9, 1]} : (tensor<1x9x1x1xf32>) -> tensor<9x1xf32> loc("scatter_elements4")
    %19 = "tensorop.reshape"(%18) {shape = [3, 3], source.tensor = "scatter_elements4.out"} : (tensor<9x1xf32>) -> tensor<3x3xf32> loc("scatter_elements4")
    %20 = "tensorop.reshape"(%0) {shape = [4, 15]} : (tensor<4x3x5xf32>) -> tensor<4x15xf32> loc("gather_nd5")
    %21 = "tensorop.weight"() {key = "gather_nd5.weight"} : () -> tensor<2x4x1x1xf32> loc("gather_nd5")
    %22 = "tensorop.reshape"(%20) {shape = [1, 4, 1, 15]} : (tensor<4x15xf32>) -> tensor<1x4x1x15xf32> loc("gather_nd5")
    %23 = "tensorop.conv"(%22, %21) {codegen.macs = 0} : (tensor<1x4x1x15xf32>, tensor<2x4x1x1xf32>) -> tensor<1x2x1x15xf32> loc("gather_nd5")
    %24 = "tensorop.reshape"(%23) {shape = [2, 15]} : (tensor<1x2x1x15xf32>) -> tensor<2x15xf32> loc("gather_nd5")
    %25 = "tensorop.reshape"(%24) {shape = [2, 3, 5], source.tensor = "gather_nd5.out"} : (tensor<2x15xf32>) -> tensor<2x3x5xf32> loc("gather_nd5")
    "func.return"(%11, %19, %25) : (tensor<4x3x5xf32>, tensor<3x3xf32>, tensor<2x3x5xf32>) -> ()
  }) {tensorop.input_names = ["data", "b", "c", "d"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
