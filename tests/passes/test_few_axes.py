"""Integers are computed in the shape of their neighbours: the same bits, and no op where it would not fit."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Quant, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.elements.integer import Cast, MacShift
from bmcompiler.ops.elements.linear_quant import Dequantize, Quantize
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target

ROWS, WIDTH = 24, 8
MAP = (1, 4, 6, WIDTH)
QUANT = Quant(0.03125)
BYTES = TensorType(MAP, "i8", QUANT)
CONTEXT = PassContext(target=find_target("bm1684x"))


def changed(module: Module) -> Module:
    """The module behind the pass, which keeps every bit of the outputs."""
    rng = np.random.default_rng(0)
    pairs = zip(module.main.input_names, module.main.arguments)
    given = {name: (rng.standard_normal(value.shape) * 2).astype(np.float32) for name, value in pairs}
    before = run_module(module, given)
    run_pipeline(module, "few-axes", CONTEXT)
    verify_module(module)
    for name, after in run_module(module, given).items():
        np.testing.assert_array_equal(before[name].view(np.uint8), after.view(np.uint8))
    assert not run_pipeline(module, "few-axes", CONTEXT)
    return module


def shapes(module: Module, *kinds: type) -> list[tuple[int, ...]]:
    return [op.results[0].shape for op in module.main.ops if isinstance(op, kinds)]


def quantized(b: Builder, x: Value, quant: Quant = QUANT) -> Value:
    return b.quantize(x, out=TensorType(x.shape, "i8", quant), rounding="away")


def rows(b: Builder, name: str) -> Value:
    """Bytes that are rows, as a map."""
    x = b.relu(b.input(name, TensorType((ROWS, WIDTH))))
    flat = quantized(b, x)
    return b.reshape(b.reshape(flat, shape=(1, 2, 2, 6, WIDTH)), shape=MAP)


def test_sums_of_rows_are_rows() -> None:
    b = Builder.new("net")
    made = b.mac_shift(rows(b, "x"), rows(b, "y"), multipliers=(64, 77), rshift=7, out=BYTES)
    module = changed(b.outputs([b.dequantize(made)], ["z"]))
    assert shapes(module, MacShift, Dequantize) == [(ROWS, WIDTH)] * 2
    assert module.main.returned[0].shape == MAP


def test_an_input_that_others_see_as_rows_is_quantized_so() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType(MAP))
    softened = b.relu(b.reshape(x, shape=(ROWS, WIDTH)))
    late = quantized(b, x)
    module = changed(b.outputs([softened, b.dequantize(late)], ["y", "z"]))
    assert shapes(module, Quantize, Dequantize) == [(ROWS, WIDTH)] * 2


def test_an_input_that_is_seen_as_rows_later_stays() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType(MAP))
    early = quantized(b, x)
    module = b.outputs([b.dequantize(early), b.relu(b.reshape(x, shape=(ROWS, WIDTH)))], ["z", "y"])
    assert shapes(changed(module), Quantize) == [MAP]


def test_an_axis_too_many_goes_before() -> None:
    """Heads that were cut with an axis for queries, keys and values."""
    b = Builder.new("net")
    x = quantized(b, b.relu(b.input("x", TensorType((4, 6, 1, 2, 4)))))
    heads = b.permute(x, order=(2, 0, 3, 1, 4))
    made = b.cast(b.reshape(b.dequantize(heads), shape=(4, 2, 6, 4)), dtype="f16")
    module = changed(b.outputs([b.cast(made, dtype="f32")], ["y"]))
    assert shapes(module, Dequantize, Cast) == [(4, 2, 6, 4)] * 3


@pytest.mark.parametrize("kind", ["other rows", "more axes", "channels", "two shapes", "floats"])
def test_others_stay(kind: str) -> None:
    b = Builder.new("net")
    if kind == "other rows":
        other = quantized(b, b.relu(b.input("y", TensorType(MAP))))
        made = [b.mac_shift(rows(b, "x"), other, multipliers=(64, 77), rshift=7, out=BYTES)]
    elif kind == "more axes":
        flat = b.reshape(b.relu(b.input("x", TensorType(MAP))), shape=(ROWS, WIDTH))
        made = [quantized(b, flat)]
    elif kind == "channels":
        scales = Quant.along(1, (0.5, 0.25, 0.125, 1.0))
        flat = b.reshape(b.relu(b.input("x", TensorType((ROWS, WIDTH)))), shape=MAP)
        made = [quantized(b, flat, scales)]
    elif kind == "two shapes":
        x = quantized(b, b.relu(b.input("x", TensorType((1, 4, 2, 6, 4)))))
        wide = b.dequantize(x)
        made = [b.relu(b.reshape(wide, shape=shape)) for shape in ((4, 2, 6, 4), (8, 6, 4))]
    else:
        made = [b.add(*(b.reshape(b.relu(b.input(name, TensorType((ROWS, WIDTH)))), shape=MAP) for name in "xy"))]
    module = b.outputs(made, [f"y{number}" for number in range(len(made))])
    assert not run_pipeline(module, "few-axes", CONTEXT)
