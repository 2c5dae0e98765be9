// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.div"(%0, %1) {source.tensor = "div2.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("div2")
    %3 = "tensorop.erf"(%2) {source.tensor = "erf3.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("erf3")
    %4 = "tensorop.weight"() {key = "w4"} : () -> tensor<1xf32>
    %5 = "tensorop.add"(%3, %4) {source.tensor = "add5.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("add5")
    %6 = "tensorop.mul"(%0, %5) {source.tensor = "mul6.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul6")
    %7 = "tensorop.weight"() {key = "w7"} : () -> tensor<1xf32>
    %8 = "tensorop.mul"(%6, %7) {source.tensor = "mul8.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("mul8")
    %9 = "tensorop.weight"() {key = "w9"} : () -> tensor<1xf32>
    %10 = "tensorop.mul"(%0, %9) {source.tensor = "mul10.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("mul10")
    %11 = "tensorop.weight"() {key = "w11"} : () -> tensor<1xf32>
    %12 = "tensorop.div"(%0, %11) {source.tensor = "div12.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("div12")
    %13 = "tensorop.erf"(%12) {source.tensor = "erf13.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("erf13")
    %14 = "tensorop.weight"() {key = "w14"} : () -> tensor<1xf32>
    %15 = "tensorop.add"(%13, %14) {source.tensor = "add15.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("add15")
    %16 = "tensorop.mul"(%10, %15) {source.tensor = "mul16.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul16")
    %17 = "tensorop.weight"() {key = "w17"} : () -> tensor<1xf32>
    %18 = "tensorop.weight"() {key = "w18"} : () -> tensor<1xf32>
    %19 = "tensorop.weight"() {key = "w19"} : () -> tensor<1xf32>
    %20 = "tensorop.mul"(%0, %19) {source.tensor = "mul20.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("mul20")
    %21 = "tensorop.erf"(%20) {source.tensor = "erf21.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("erf21")
    %22 = "tensorop.add"(%18, %21) {source.tensor = "add22.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("add22")
    %23 = "tensorop.mul"(%17, %22) {source.tensor = "mul23.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul23")
    %24 = "tensorop.mul"(%23, %0) {source.tensor = "mul24.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul24")
    "func.return"(%8, %16, %24) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fuse-gates
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.gelu"(%0) {source.tensor = "mul8.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["div2", "erf3", "add5", "mul6", "mul8"])
    %2 = "tensorop.gelu"(%0) {source.tensor = "mul16.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["mul10", "div12", "erf13", "add15", "mul16"])
    %3 = "tensorop.gelu"(%0) {source.tensor = "mul24.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["mul20", "erf21", "add22", "mul23", "mul24"])
    "func.return"(%1, %2, %3) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
