// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x2xf32>) -> (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x2xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.mul"(%0, %1) {source.tensor = "mul2.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("mul2")
    %3 = "tensorop.max"(%0, %2) {source.tensor = "max3.out"} : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("max3")
    %4 = "tensorop.relu"(%0) {source.tensor = "relu4.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("relu4")
    %5 = "tensorop.weight"() {key = "w5"} : () -> tensor<1xf32>
    %6 = "tensorop.neg"(%0) {source.tensor = "neg6.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("neg6")
    %7 = "tensorop.relu"(%6) {source.tensor = "relu7.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("relu7")
    %8 = "tensorop.mul"(%5, %7) {source.tensor = "mul8.out"} : (tensor<1xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("mul8")
    %9 = "tensorop.sub"(%4, %8) {source.tensor = "sub9.out"} : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("sub9")
    %10 = "tensorop.relu"(%0) {source.tensor = "relu10.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("relu10")
    %11 = "tensorop.weight"() {key = "w11"} : () -> tensor<4x1x1xf32>
    %12 = "tensorop.abs"(%0) {source.tensor = "abs12.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("abs12")
    %13 = "tensorop.sub"(%0, %12) {source.tensor = "sub13.out"} : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("sub13")
    %14 = "tensorop.mul"(%11, %13) {source.tensor = "mul14.out"} : (tensor<4x1x1xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("mul14")
    %15 = "tensorop.weight"() {key = "w15"} : () -> tensor<1xf32>
    %16 = "tensorop.mul"(%14, %15) {source.tensor = "mul16.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("mul16")
    %17 = "tensorop.add"(%10, %16) {source.tensor = "add17.out"} : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("add17")
    %18 = "tensorop.weight"() {key = "w18"} : () -> tensor<1x4x1x1xf32>
    %19 = "tensorop.weight"() {key = "w19"} : () -> tensor<1xf32>
    %20 = "tensorop.min"(%0, %19) {source.tensor = "min20.out"} : (tensor<1x4x2x2xf32>, tensor<1xf32>) -> tensor<1x4x2x2xf32> loc("min20")
    %21 = "tensorop.mul"(%18, %20) {source.tensor = "mul21.out"} : (tensor<1x4x1x1xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("mul21")
    %22 = "tensorop.relu"(%0) {source.tensor = "relu22.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("relu22")
    %23 = "tensorop.add"(%21, %22) {source.tensor = "add23.out"} : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc("add23")
    "func.return"(%3, %9, %17, %23) : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()

// after fuse-patterns
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x2x2xf32>) -> (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x2x2xf32>):
    %1 = "tensorop.leaky_relu"(%0) {slope = 0.10000000149011612, source.tensor = "max3.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc(fused["mul2", "max3"])
    %2 = "tensorop.leaky_relu"(%0) {slope = 0.30000001192092896, source.tensor = "sub9.out"} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> loc(fused["relu4", "neg6", "relu7", "mul8", "sub9"])
    %3 = "tensorop.weight"() {key = "add17.slope"} : () -> tensor<4xf32> loc("add17")
    %4 = "tensorop.prelu"(%0, %3) {source.tensor = "add17.out"} : (tensor<1x4x2x2xf32>, tensor<4xf32>) -> tensor<1x4x2x2xf32> loc(fused["relu10", "abs12", "sub13", "mul14", "mul16", "add17"])
    %5 = "tensorop.weight"() {key = "add23.slope"} : () -> tensor<4xf32> loc("add23")
    %6 = "tensorop.prelu"(%0, %5) {source.tensor = "add23.out"} : (tensor<1x4x2x2xf32>, tensor<4xf32>) -> tensor<1x4x2x2xf32> loc(fused["min20", "mul21", "relu22", "add23"])
    "func.return"(%1, %2, %4, %6) : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2", "out3"]} : () -> ()
}) : () -> ()
