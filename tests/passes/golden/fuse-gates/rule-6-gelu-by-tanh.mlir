// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.weight"() {key = "w1"} : () -> tensor<1xf32>
    %2 = "tensorop.pow"(%0, %1) {source.tensor = "pow2.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("pow2")
    %3 = "tensorop.weight"() {key = "w3"} : () -> tensor<1xf32>
    %4 = "tensorop.mul"(%2, %3) {source.tensor = "mul4.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("mul4")
    %5 = "tensorop.add"(%0, %4) {source.tensor = "add5.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("add5")
    %6 = "tensorop.weight"() {key = "w6"} : () -> tensor<1xf32>
    %7 = "tensorop.mul"(%0, %6) {source.tensor = "mul7.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("mul7")
    %8 = "tensorop.weight"() {key = "w8"} : () -> tensor<1xf32>
    %9 = "tensorop.mul"(%5, %8) {source.tensor = "mul9.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("mul9")
    %10 = "tensorop.tanh"(%9) {source.tensor = "tanh10.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("tanh10")
    %11 = "tensorop.weight"() {key = "w11"} : () -> tensor<1xf32>
    %12 = "tensorop.add"(%10, %11) {source.tensor = "add12.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("add12")
    %13 = "tensorop.mul"(%7, %12) {source.tensor = "mul13.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul13")
    %14 = "tensorop.weight"() {key = "w14"} : () -> tensor<1xf32>
    %15 = "tensorop.mul"(%14, %0) {source.tensor = "mul15.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul15")
    %16 = "tensorop.mul"(%15, %0) {source.tensor = "mul16.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul16")
    %17 = "tensorop.weight"() {key = "w17"} : () -> tensor<1xf32>
    %18 = "tensorop.add"(%16, %17) {source.tensor = "add18.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("add18")
    %19 = "tensorop.weight"() {key = "w19"} : () -> tensor<1xf32>
    %20 = "tensorop.mul"(%19, %0) {source.tensor = "mul20.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul20")
    %21 = "tensorop.mul"(%20, %18) {source.tensor = "mul21.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul21")
    %22 = "tensorop.weight"() {key = "w22"} : () -> tensor<1xf32>
    %23 = "tensorop.tanh"(%21) {source.tensor = "tanh23.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("tanh23")
    %24 = "tensorop.add"(%22, %23) {source.tensor = "add24.out"} : (tensor<1xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("add24")
    %25 = "tensorop.mul"(%24, %0) {source.tensor = "mul25.out"} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc("mul25")
    %26 = "tensorop.weight"() {key = "w26"} : () -> tensor<1xf32>
    %27 = "tensorop.mul"(%25, %26) {source.tensor = "mul27.out"} : (tensor<1x2x4xf32>, tensor<1xf32>) -> tensor<1x2x4xf32> loc("mul27")
    "func.return"(%13, %27) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()

// after fuse-gates
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<1x2x4xf32>):
    %1 = "tensorop.gelu"(%0) {approximate = "tanh", source.tensor = "mul13.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["pow2", "mul4", "add5", "mul7", "mul9", "tanh10", "add12", "mul13"])
    %2 = "tensorop.gelu"(%0) {approximate = "tanh", source.tensor = "mul27.out"} : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32> loc(fused["mul15", "mul16", "add18", "mul20", "mul21", "tanh23", "add24", "mul25", "mul27"])
    "func.return"(%1, %2) : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1"]} : () -> ()
}) : () -> ()
