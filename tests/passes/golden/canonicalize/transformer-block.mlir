// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x8xf32>) -> tensor<1x4x8xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x8xf32>):
    %1 = "tensorop.reduce"(%0) {axes = [2], method = "mean", source.tensor = "reduce1.out"} : (tensor<1x4x8xf32>) -> tensor<1x4x1xf32> loc("reduce1")
    %2 = "tensorop.sub"(%0, %1) {source.tensor = "sub2.out"} : (tensor<1x4x8xf32>, tensor<1x4x1xf32>) -> tensor<1x4x8xf32> loc("sub2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<1xf32>
    %4 = "tensorop.pow"(%2, %3) {source.tensor = "pow4.out"} : (tensor<1x4x8xf32>, tensor<1xf32>) -> tensor<1x4x8xf32> loc("pow4")
    %5 = "tensorop.reduce"(%4) {axes = [2], method = "mean", source.tensor = "reduce5.out"} : (tensor<1x4x8xf32>) -> tensor<1x4x1xf32> loc("reduce5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<1xf32>
    %7 = "tensorop.add"(%5, %6) {source.tensor = "add7.out"} : (tensor<1x4x1xf32>, tensor<1xf32>) -> tensor<1x4x1xf32> loc("add7")
    %8 = "tensorop.sqrt"(%7) {source.tensor = "sqrt8.out"} : (tensor<1x4x1xf32>) -> tensor<1x4x1xf32> loc("sqrt8")
    %9 = "tensorop.div"(%2, %8) {source.tensor = "div9.out"} : (tensor<1x4x8xf32>, tensor<1x4x1xf32>) -> tensor<1x4x8xf32> loc("div9")
    %10 = "tensorop.weight"() {key = "w10"} : () -> tensor<8xf32>
    %11 = "tensorop.mul"(%9, %10) {source.tensor = "mul11.out"} : (tensor<1x4x8xf32>, tensor<8xf32>) -> tensor<1x4x8xf32> loc("mul11")
    %12 = "tensorop.weight"() {key = "w12"} : () -> tensor<8xf32>
    %13 = "tensorop.add"(%11, %12) {source.tensor = "add13.out"} : (tensor<1x4x8xf32>, tensor<8xf32>) -> tensor<1x4x8xf32> loc("add13")
    %14 = "tensorop.weight"() {key = "w14"} : () -> tensor<8x16xf32>
    %15 = "tensorop.matmul"(%13, %14) {source.tensor = "matmul15.out"} : (tensor<1x4x8xf32>, tensor<8x16xf32>) -> tensor<1x4x16xf32> loc("matmul15")
    %16 = "tensorop.weight"() {key = "w16"} : () -> tensor<16xf32>
    %17 = "tensorop.add"(%15, %16) {source.tensor = "add17.out"} : (tensor<1x4x16xf32>, tensor<16xf32>) -> tensor<1x4x16xf32> loc("add17")
    %18 = "tensorop.weight"() {key = "w18"} : () -> tensor<1xf32>
    %19 = "tensorop.div"(%17, %18) {source.tensor = "div19.out"} : (tensor<1x4x16xf32>, tensor<1xf32>) -> tensor<1x4x16xf32> loc("div19")
    %20 = "tensorop.erf"(%19) {source.tensor = "erf20.out"} : (tensor<1x4x16xf32>) -> tensor<1x4x16xf32> loc("erf20")
    %21 = "tensorop.weight"() {key = "w21"} : () -> tensor<1xf32>
    %22 = "tensorop.add"(%20, %21) {source.tensor = "add22.out"} : (tensor<1x4x16xf32>, tensor<1xf32>) -> tensor<1x4x16xf32> loc("add22")
    %23 = "tensorop.mul"(%17, %22) {source.tensor = "mul23.out"} : (tensor<1x4x16xf32>, tensor<1x4x16xf32>) -> tensor<1x4x16xf32> loc("mul23")
    %24 = "tensorop.weight"() {key = "w24"} : () -> tensor<1xf32>
    %25 = "tensorop.mul"(%23, %24) {source.tensor = "mul25.out"} : (tensor<1x4x16xf32>, tensor<1xf32>) -> tensor<1x4x16xf32> loc("mul25")
    %26 = "tensorop.weight"() {key = "w26"} : () -> tensor<16x8xf32>
    %27 = "tensorop.matmul"(%25, %26) {source.tensor = "matmul27.out"} : (tensor<1x4x16xf32>, tensor<16x8xf32>) -> tensor<1x4x8xf32> loc("matmul27")
    %28 = "tensorop.weight"() {key = "w28"} : () -> tensor<8xf32>
    %29 = "tensorop.add"(%27, %28) {source.tensor = "add29.out"} : (tensor<1x4x8xf32>, tensor<8xf32>) -> tensor<1x4x8xf32> loc("add29")
    %30 = "tensorop.add"(%29, %0) {source.tensor = "add30.out"} : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xf32> loc("add30")
    "func.return"(%30) : (tensor<1x4x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()

// after canonicalize
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x8xf32>) -> tensor<1x4x8xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x4x8xf32>):
    %1 = "tensorop.weight"() {key = "add13.gamma"} : () -> tensor<8xf32> loc("add13")
    %2 = "tensorop.weight"() {key = "add13.beta"} : () -> tensor<8xf32> loc("add13")
    %3 = "tensorop.layer_norm"(%0, %1, %2) {axis = 2, epsilon = 9.999999747378752e-06, source.tensor = "add13.out"} : (tensor<1x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x4x8xf32> loc(fused["reduce1", "sub2", "pow4", "reduce5", "add7", "sqrt8", "div9", "mul11", "add13"])
    %4 = "tensorop.weight"() {key = "w14"} : () -> tensor<8x16xf32>
    %5 = "tensorop.reshape"(%3) {shape = [4, 8]} : (tensor<1x4x8xf32>) -> tensor<4x8xf32> loc("matmul15")
    %6 = "tensorop.weight"() {key = "matmul15.bias"} : () -> tensor<16xf32> loc("add17")
    %7 = "tensorop.matmul"(%5, %4, %6) {source.tensor = "add17.out"} : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<4x16xf32> loc(fused["matmul15", "add17"])
    %8 = "tensorop.gelu"(%7) {source.tensor = "mul25.out"} : (tensor<4x16xf32>) -> tensor<4x16xf32> loc(fused["div19", "erf20", "add22", "mul23", "mul25", "matmul15", "add17", "matmul27"])
    %9 = "tensorop.weight"() {key = "w26"} : () -> tensor<16x8xf32>
    %10 = "tensorop.weight"() {key = "matmul27.bias"} : () -> tensor<8xf32> loc("add29")
    %11 = "tensorop.matmul"(%8, %9, %10) : (tensor<4x16xf32>, tensor<16x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> loc(fused["matmul27", "add29"])
    %12 = "tensorop.reshape"(%11) {shape = [1, 4, 8], source.tensor = "add29.out"} : (tensor<4x8xf32>) -> tensor<1x4x8xf32> loc(fused["matmul27", "add29"])
    %13 = "tensorop.add"(%12, %0) {source.tensor = "add30.out"} : (tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xf32> loc("add30")
    "func.return"(%13) : (tensor<1x4x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0"]} : () -> ()
}) : () -> ()
