"""The text form: exact both ways, and clean errors for anything else."""

from __future__ import annotations

import math
import random
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_strategies import ATTRIBUTES, TYPES, modules

from bmcompiler.errors import BMError, FileFormatError
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ir.parser import parse_module as parse_plain
from bmcompiler.ops import parse_module
from bmcompiler.ops.builder import Builder

EXAMPLE = """\
// a comment
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x8x8xf32>) -> tensor<1x4x4x4xf32>, sym_name = "net"}> ({
  ^bb0(%0: tensor<1x3x8x8xf32>):
    %1 = "tensorop.weight"() {key = "w"} : () -> tensor<4x3x3x3xf32> loc("conv1")
    %2 = "tensorop.conv"(%0, %1) {pads = [1, 1, 1, 1], strides = [2, 2]}
        : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x4x4xf32> loc(fused["conv1", "bn1"])
    %3, %4 = "tensorop.split"(%2) {axis = 1, sizes = [1, 3]}
        : (tensor<1x4x4x4xf32>) -> (tensor<1x1x4x4xf32>, tensor<1x3x4x4xf32>)
    %5 = "tensorop.concat"(%4, %3) {axis = 1} : (tensor<1x3x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x4x4x4xf32>
    %6 = "tensorop.quantize"(%5) : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xi8, {scale = 0.5}>
    %7 = "tensorop.dequantize"(%6) : (tensor<1x4x4x4xi8, {scale = 0.5}>) -> tensor<1x4x4x4xf32>
    %8 = "tensorop.elu"(%7) {alpha = 0x7FF0000000000000 : f64} : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
    "func.return"(%8) : (tensor<1x4x4x4xf32>) -> ()
  }) {tensorop.input_names = ["data"], tensorop.output_names = ["conv1"]} : () -> ()
}) {tensorop.note = {a = [], unit}} : () -> ()
"""


def same(a: Any, b: Any) -> bool:
    """Equality that tells 1 from true and 1.0, and in which NaN equals NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(sorted(a)) == list(sorted(b)) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return bool(a == b)


@settings(max_examples=80, deadline=None)
@given(modules())
def test_random_modules_read_back_exactly(module: Module) -> None:
    verify_module(module)
    text = str(module)
    again = parse_plain(text)
    assert str(again) == text
    verify_module(again)
    assert same(again.attributes, module.attributes)
    for new, old in zip(again.walk(), module.walk(), strict=True):
        assert (new.name, new.location) == (old.name, old.location)
        assert same(new.attributes, old.attributes)
        assert [v.type for v in new.results] == [v.type for v in old.results]
    for new_function, old_function in zip(again.functions, module.functions, strict=True):
        assert new_function.name == old_function.name and new_function.input_names == old_function.input_names
        assert same(new_function.attributes, old_function.attributes)


@settings(max_examples=200, deadline=None)
@given(ATTRIBUTES, TYPES)
def test_attributes_and_types_read_back_exactly(value: Any, type: TensorType) -> None:
    builder = Builder.new("net")
    result = builder.input("x", type)
    module = builder.outputs([result], ["y"])
    module.main.attributes["a"] = value
    again = parse_plain(str(module))
    assert same(again.main.attributes["a"], value)
    assert again.main.arguments[0].type == type


def test_the_example_is_read_and_printed_in_normal_form() -> None:
    module = parse_module(EXAMPLE)
    assert module.attributes == {"note": {"a": (), "unit": True}}
    assert [op.short_name for op in module.main.ops[1:4]] == ["conv", "split", "concat"]
    assert module.main.ops[1].location == ("conv1", "bn1")
    assert module.main.ops[-2].attributes["alpha"] == math.inf
    text = str(module)
    assert str(parse_module(text)) == text


BROKEN: list[tuple[str, str, str]] = [
    ('"builtin.module"', '"other.module"', 'line 2, column 1: the text must start with "builtin.module"'),
    ("%2 =", "%2, %9 =", "line 6, column 5: 2 names for 1 results"),
    ("(%0, %1)", "(%0, %77)", "line 6, column 30: %77 is used before it is defined"),
    ("%1 =", "%0 =", "line 5, column 5: %0 is defined twice"),
    ("tensor<1x3x8x8xf32>) -> tensor<1x4x4x4xf32>, sym", "tensor<1x3x8xf32>) -> tensor<1x4x4x4xf32>, sym", "differs"),
    ('"w"}', '"w}', "line 5, column 79: unexpected character '\"'"),
    ("[2, 2]", "[2, @]", "line 6, column 70: unexpected character '@'"),
    ("[2, 2]", "[2, 2", "found '}'"),
    ("tensor<4x3x3x3xf32> loc", "tensor<4x3x3x3xf3> loc", "unknown element type 'f3'"),
    ("tensor<4x3x3x3xf32> loc", "tensor<?x3xf32> loc", "line 5, column 57: unexpected character '?'"),
    ("tensor<4x3x3x3xf32> loc", f"tensor<{'9' * 30}xf32> loc", "at most"),
    ("tensor<4x3x3x3xf32> loc", f"tensor<{'9' * 500}xf32> loc", "too long"),
    ("{scale = 0.5}>\n", "{scale = 1}>\n", "a tensor encoding has the form"),
    ("{scale = 0.5}>\n", "{scale = 0x7FF0000000000000 : f64}>\n", "must be finite"),
    ("{scale = 0.5}>\n", "{other = 0.5}>\n", "a tensor encoding has the form"),
    ("axis = 1, sizes", f"axis = {'1' * 50}, sizes", "more than 40 digits"),
    ("axis = 1, sizes", "axis = 0x1FFFFFFFFFFFFFFFFF : f64, sizes", "does not fit f64"),
    ("axis = 1, sizes", f"axis = {'[' * 80}{']' * 80}, sizes", "nested more than 64"),
    ("(tensor<1x4x4x4xf32>) -> (", "(tensor<1x4x4xf32>) -> (", "operand types of the signature differ"),
    ('["data"]', '["data", "more"]', "tensorop.input_names must be 1 strings"),
    ("tensorop.output_names", "output", "tensorop.output_names must be 1 strings"),
    ("sym_name", "name", "needs sym_name"),
    ('"func.func"', '"func.other"', "func.func operations only"),
    ("}} : () -> ()", "}} : () -> () x", "text after the end"),
    ("^bb0", "//", "%0 is used before it is defined"),
]


@pytest.mark.parametrize(("old", "new", "message"), BROKEN)
def test_errors_name_file_line_and_column(old: str, new: str, message: str) -> None:
    assert old in EXAMPLE
    with pytest.raises(FileFormatError) as caught:
        parse_module(EXAMPLE.replace(old, new, 1), "net.mlir")
    assert str(caught.value).startswith("net.mlir: line ") and message in str(caught.value)


@pytest.mark.parametrize(("old", "new", "message"), [
    ("strides = [2, 2]", "stride = [2, 2]", "layer 'conv1+bn1' (conv): unknown attribute 'stride'"),
    ("axis = 1, sizes", "axis = 7, sizes", "(split): axis 7 does not exist"),
    ("tensorop.elu", "tensorop.eluu", "no TensorOp is called 'eluu'"),
])  # fmt: skip
def test_errors_of_ops_name_the_layer(old: str, new: str, message: str) -> None:
    with pytest.raises(BMError) as caught:
        module = parse_module(EXAMPLE.replace(old, new, 1))
        module.weights["w"] = np.zeros((4, 3, 3, 3), np.float32)
        verify_module(module)
    assert message in str(caught.value)


PIECES = [
    "", "0", "-1", "99999999999999999999", "0x", "1.5e400", "[", "]", "{", "}", "<", ">", '"', "%0", "%", "//", "/",
    "\n", "\\", "\\FF", "\0", "é", "\ud800", "tensor<", "xi8", "loc(", "true", "^bb0", "func.return", " : f64",
]  # fmt: skip


def _mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        end = min(len(text), at + rng.choice([0, 1, 1, 2, 5, 30]))
        middle = rng.choice([rng.choice(PIECES), text[end : end + rng.randint(1, 40)], chr(rng.randrange(32, 127))])
        text = text[:at] + middle + text[end:]
    return text[: rng.randrange(len(text) + 1)] if rng.random() < 0.05 else text


@pytest.mark.parametrize("seed", range(20))
def test_mutated_text_is_read_or_refused_cleanly(seed: int) -> None:
    rng, refused = random.Random(seed), 0
    for _ in range(100):
        text = _mutated(rng, EXAMPLE)
        start = time.process_time()
        try:
            verify_module(parse_module(text))
        except BMError:
            refused += 1
        assert time.process_time() - start < 5
    assert refused > 50


@pytest.mark.parametrize("text", ["", " ", "//", "/" * 50_000, " " * 50_000 + "@", '"' + "a" * 50_000, "[" * 50_000,
                                  "// x\n" * 20_000 + "@", "1" * 50_000, "tensor<" + "1x" * 50_000])  # fmt: skip
def test_hostile_text_is_refused_quickly(text: str) -> None:
    start = time.process_time()
    with pytest.raises(FileFormatError):
        parse_module(text)
    assert time.process_time() - start < 2


@given(st.text(max_size=200))
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(FileFormatError):
        parse_module(text)
