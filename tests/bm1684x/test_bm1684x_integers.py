"""Integer ops on the BM1684X: all signs and widths, in one command or a few, give the bits of evaluation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmcompiler import compile_module
from bmcompiler.backends.bm1684x.kernels.int_steps import steps_of
from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir import Block, Quant, TensorType, Value
from bmcompiler.ops import find_op
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.runtime.bm1684x_device import Bm1684xDevice
from bmcompiler.target import find_target
from bmcompiler.testing import check_op

CHIP = "bm1684x"
SHAPE = (2, 70, 5, 7)
BYTES = ("i8", "u8")


def check(make: Callable[..., Any], dtype: str, operands: int = 1, shape: tuple[int, ...] = SHAPE) -> None:
    """Integers of all values go in; only level 2, as ops alone differ in nothing."""
    checked = check_op(make, [shape] * operands, target=CHIP, quantize="f32", dtype=dtype, seeds=1, levels=(2,))
    assert {row.where for row in checked.result.rows} == {CHIP}


def out(dtype: str, shape: tuple[int, ...] = SHAPE) -> TensorType:
    return TensorType(shape, dtype)


SUMS: dict[str, tuple[int, dict[str, Any]]] = {
    "mac_shift": (2, {"multipliers": (77, -127), "rshift": 7}),
    "affine_sum": (2, {"multipliers": (3001, 1), "rshift": 12, "value": -70000}),
    "muls_shift": (1, {"multiplier": 20001, "rshift": 15}),
    "adds_shift": (1, {"value": -77, "rshift": 1}),
    "round_rshift": (1, {"rshift": 2}),
    "mul_shift": (2, {"rshift": 6}),
    "add_shift": (2, {"rshift": 1}),
    "sub_shift": (2, {"rshift": 0}),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_and_products_of_every_sign(name: str) -> None:
    """Four results of a net: both signs of operands cannot stand in one, but those of results can."""
    operands, attributes = SUMS[name]
    for dtype in BYTES:

        def make(b: Builder, *x: Value) -> list[Value]:
            return [getattr(b, name)(*x, **attributes, out=out(result)) for result in (*BYTES, "i16")]

        check(make, dtype, operands)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "i32"])
def test_maxima_minima_and_relu(dtype: str) -> None:
    check(lambda b, x, y: [b.max(x, y), b.min(x, y), b.relu(x), b.maxs(x, value=3), b.mins(x, value=5)], dtype, 2)


def test_operands_that_repeat_are_computed_as_words() -> None:
    check_op(
        lambda b, x, y: b.add_shift(x, y, rshift=1),
        [(2, 5, 4, 3), (2, 1, 4, 1)],
        target=CHIP,
        quantize="f32",
        dtype="i8",
    )


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("shape", [SHAPE, (3, 50)])
def test_tables(dtype: str, shape: tuple[int, ...]) -> None:
    table = np.random.default_rng(1).integers(-128, 128, 256)
    check(lambda b, x: b.lut(x, b.weight(table.astype(np.int8), "t")), dtype, 1, shape)
    check(lambda b, x: b.lut(x, b.weight((table * 250).astype(np.int16), "t")), dtype, 1, shape)


@pytest.mark.parametrize("shape", [(2, 70, 40, 32), (1, 1030, 40, 32)])  # channels share what is in their lane
def test_tables_of_large_maps_take_two_bytes_by_an_index(shape: tuple[int, ...]) -> None:
    """The last of all pairs of bytes, which no table holds, comes from a map that is full of it."""
    b, table = Builder.new("net"), np.arange(256)[::-1].astype(np.uint8)
    module = b.outputs([b.lut(b.input("x", TensorType(shape, "u8")), b.weight(table, "t"))], ["y"])
    model = find_target(CHIP).compile([module], 2).model
    (lookup,) = (line for line in find_target(CHIP).disassemble(model).splitlines() if "sg.lane_fast" in line)
    assert "opd0_w=65535" in lookup and f"opd1_c={shape[1]}" in lookup
    device = Bm1684xDevice().load(model)[0]
    for x in (np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8), np.full(shape, 255, np.uint8)):
        (made,) = device.run([x])
        np.testing.assert_array_equal(made, table[x])


def test_tables_of_pairs_are_for_large_maps_of_an_even_size() -> None:
    b, table = Builder.new("net"), np.arange(256).astype(np.uint8)
    small, odd, large = (
        b.lut(b.input(f"x{h}", TensorType((2, 70, h, w), "u8")), b.weight(table, "t"))
        for h, w in ((8, 32), (41, 31), (40, 32))
    )
    for result, each in ((small, 1), (odd, 1), (large, 2)):
        work = find_target(CHIP).kernel_for(result.op).whole(result.op)
        assert work.cycles * each == 4 * result.type.size // 140


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("entries", ["i8", "i16", "i32", "f32"])
@pytest.mark.parametrize("computed", [True, False])
def test_tables_that_are_computed_or_wide(dtype: str, entries: str, computed: bool, tmp_path: Path) -> None:
    rng, b, kind = np.random.default_rng(2), Builder.new("net"), TensorType((256,), entries)
    table = (rng.normal(size=256) * 60).astype(kind.numpy)
    x = rng.integers(0, 256, (3, 70, 9)).astype(np.uint8).view(out(dtype).numpy)
    found = b.input("x", TensorType(x.shape, dtype))
    module = b.outputs([b.lut(found, b.input("t", kind) if computed else b.weight(table, "t"))], ["y"])
    result = compile_module(module, target=CHIP, check="always")
    assert {row.where for row in result.rows} == {CHIP}
    result.save(tmp_path / "net.bmodel")
    (y,) = Session(tmp_path / "net.bmodel").run({"x": x, "t": table} if computed else {"x": x}, raw=True).values()
    np.testing.assert_array_equal(y, table[x.view(np.uint8)])


@pytest.mark.parametrize("quant", [Quant(0.03125), Quant(0.0234375, 100)])
@pytest.mark.parametrize("dtype", ["u8", "i8", "i16"])
def test_to_integers_and_back(dtype: str, quant: Quant) -> None:
    def make(b: Builder, x: Value) -> Value:
        return b.dequantize(b.quantize(x, rounding="away", out=TensorType(SHAPE, dtype, quant)))

    check(make, "f32")


def test_nan_becomes_the_zero_point() -> None:
    type = TensorType((1, 3), "u8", Quant(0.5, 7))
    op = find_op("quantize")([Value(TensorType((1, 3)), Block(), 0)], {"rounding": "away"}, [type])
    x = np.array([[np.nan, np.inf, 1.0]], np.float32)
    assert evaluate_op(op, [x], find_target(CHIP))[0].tolist() == [[7, 255, 9]]


def test_sums_beyond_32_bits_have_no_steps() -> None:
    x = Value(out("i16"), Block(), 0)
    assert steps_of(find_op("mac_shift")([x], {"multipliers": (1 << 20,), "rshift": 9})) is not None
    assert steps_of(find_op("mac_shift")([x, x], {"multipliers": (1 << 20, 3), "rshift": 9})) is None


@pytest.mark.parametrize("between", [(), ("i32",), ("i16",), ("bool",)])
def test_bytes_that_a_net_is_given_become_floats(between: tuple[str, ...]) -> None:
    """By one command, or as what is made of them first."""

    def make(b: Builder, x: Value) -> Value:
        for dtype in (*between, "f32"):
            x = b.cast(x, dtype=dtype)
        return x

    check(make, "u8")
