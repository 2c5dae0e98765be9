// before
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x8xf32>):
    %1 = "tensorop.reduce"(%0) {axes = [2], method = "mean", source.tensor = "reduce1.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32> loc("reduce1")
    %2 = "tensorop.sub"(%0, %1) {source.tensor = "sub2.out"} : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32> loc("sub2")
    %3 = "tensorop.reduce"(%0) {axes = [2], method = "mean", source.tensor = "reduce3.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32> loc("reduce3")
    %4 = "tensorop.sub"(%0, %3) {source.tensor = "sub4.out"} : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32> loc("sub4")
    %5 = "tensorop.reduce"(%0) {axes = [1, 2], method = "mean", source.tensor = "reduce5.out"} : (tensor<2x3x8xf32>) -> tensor<2x1x1xf32> loc("reduce5")
    %6 = "tensorop.sub"(%0, %5) {source.tensor = "sub6.out"} : (tensor<2x3x8xf32>, tensor<2x1x1xf32>) -> tensor<2x3x8xf32> loc("sub6")
    %7 = "tensorop.reduce"(%0) {axes = [2], method = "mean", source.tensor = "reduce7.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32> loc("reduce7")
    %8 = "tensorop.sub"(%0, %7) {source.tensor = "sub8.out"} : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32> loc("sub8")
    %9 = "tensorop.weight"() {key = "w9"} : () -> tensor<1xf32>
    %10 = "tensorop.weight"() {key = "w10"} : () -> tensor<1xf32>
    %11 = "tensorop.pow"(%6, %10) {source.tensor = "pow11.out"} : (tensor<2x3x8xf32>, tensor<1xf32>) -> tensor<2x3x8xf32> loc("pow11")
    %12 = "tensorop.reduce"(%11) {axes = [1, 2], method = "mean", source.tensor = "reduce12.out"} : (tensor<2x3x8xf32>) -> tensor<2x1x1xf32> loc("reduce12")
    %13 = "tensorop.weight"() {key = "w13"} : () -> tensor<1xf32>
    %14 = "tensorop.add"(%12, %13) {source.tensor = "add14.out"} : (tensor<2x1x1xf32>, tensor<1xf32>) -> tensor<2x1x1xf32> loc("add14")
    %15 = "tensorop.weight"() {key = "w15"} : () -> tensor<1xf32>
    %16 = "tensorop.pow"(%14, %15) {source.tensor = "pow16.out"} : (tensor<2x1x1xf32>, tensor<1xf32>) -> tensor<2x1x1xf32> loc("pow16")
    %17 = "tensorop.div"(%9, %16) {source.tensor = "div17.out"} : (tensor<1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32> loc("div17")
    %18 = "tensorop.weight"() {key = "w18"} : () -> tensor<1xf32>
    %19 = "tensorop.pow"(%4, %18) {source.tensor = "pow19.out"} : (tensor<2x3x8xf32>, tensor<1xf32>) -> tensor<2x3x8xf32> loc("pow19")
    %20 = "tensorop.reduce"(%19) {axes = [2], method = "mean", source.tensor = "reduce20.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32> loc("reduce20")
    %21 = "tensorop.weight"() {key = "w21"} : () -> tensor<1xf32>
    %22 = "tensorop.add"(%20, %21) {source.tensor = "add22.out"} : (tensor<2x3x1xf32>, tensor<1xf32>) -> tensor<2x3x1xf32> loc("add22")
    %23 = "tensorop.sqrt"(%22) {source.tensor = "sqrt23.out"} : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32> loc("sqrt23")
    %24 = "tensorop.div"(%2, %23) {source.tensor = "div24.out"} : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32> loc("div24")
    %25 = "tensorop.mul"(%6, %17) {source.tensor = "mul25.out"} : (tensor<2x3x8xf32>, tensor<2x1x1xf32>) -> tensor<2x3x8xf32> loc("mul25")
    %26 = "tensorop.mul"(%8, %8) {source.tensor = "mul26.out"} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc("mul26")
    %27 = "tensorop.reduce"(%26) {axes = [2], method = "mean", source.tensor = "reduce27.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32> loc("reduce27")
    %28 = "tensorop.weight"() {key = "w28"} : () -> tensor<1xf32>
    %29 = "tensorop.add"(%27, %28) {source.tensor = "add29.out"} : (tensor<2x3x1xf32>, tensor<1xf32>) -> tensor<2x3x1xf32> loc("add29")
    %30 = "tensorop.weight"() {key = "w30"} : () -> tensor<1xf32>
    %31 = "tensorop.pow"(%29, %30) {source.tensor = "pow31.out"} : (tensor<2x3x1xf32>, tensor<1xf32>) -> tensor<2x3x1xf32> loc("pow31")
    %32 = "tensorop.mul"(%31, %8) {source.tensor = "mul32.out"} : (tensor<2x3x1xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc("mul32")
    "func.return"(%24, %25, %32) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()

// after fuse-norms
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>), sym_name = "net"}> ({
  ^bb0(%0: tensor<2x3x8xf32>):
    %1 = "tensorop.layer_norm"(%0) {axis = 2, epsilon = 9.999999747378752e-06, source.tensor = "div24.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc(fused["reduce1", "sub2", "reduce3", "sub4", "pow19", "reduce20", "add22", "sqrt23", "div24"])
    %2 = "tensorop.layer_norm"(%0) {axis = 1, epsilon = 9.999999747378752e-06, source.tensor = "mul25.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc(fused["reduce5", "sub6", "pow11", "reduce12", "add14", "pow16", "div17", "mul25"])
    %3 = "tensorop.layer_norm"(%0) {axis = 2, epsilon = 9.999999747378752e-06, source.tensor = "mul32.out"} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32> loc(fused["reduce7", "sub8", "mul26", "reduce27", "add29", "pow31", "mul32"])
    "func.return"(%1, %2, %3) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["out0", "out1", "out2"]} : () -> ()
}) : () -> ()
