"""Shifts by tensors and extremes of integers on both lane chips, against what Python's integers say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bmcompiler
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder

CHIPS = ("bm1684", "bm1684x")
TYPES = ("i8", "u8", "i16", "u16", "i32")
_PLACES = (0, 1, 7, 8, 15, 16, 31, 32, 100, -1, -8)


def _limits(dtype: str) -> tuple[int, int]:
    bits, signed = int(dtype[1:]), dtype[0] == "i"
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def _on_chip(chip: str, op: str, dtype: str, a: np.ndarray, b: np.ndarray, **attributes: str) -> list[int]:
    builder = Builder.new("net")
    inputs = [builder.input(name, TensorType(a.shape, dtype)) for name in "ab"]
    made = builder.outputs([getattr(builder, op)(*inputs, **attributes)], ["y"])
    result = bmcompiler.compile_module(made, target=chip)
    assert all(row.where == chip for row in result.rows)
    return [int(each) for each in result.session().run({"a": a, "b": b}, raw=True)["y"].ravel()]


def _moved(x: int, places: int, direction: str, dtype: str) -> int:
    _low, high = _limits(dtype)
    bits = int(dtype[1:])
    places = bits if places < 0 else min(places, bits)
    if direction == "right":
        return x >> places
    found = (x << places) & ((1 << bits) - 1)
    return found - (1 << bits) if found > high else found


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("chip", CHIPS)
def test_bits_move_by_any_number_of_places(chip: str, dtype: str) -> None:
    low, high = _limits(dtype)
    numbers = (low, high, 0, 1, 3, high // 3, low // 3, low + 1)
    places = [min(max(each, low), high) for each in _PLACES]
    a, b = (np.asarray(each) for each in zip(*((x, n) for x in numbers for n in places)))
    kind = TensorType((1,), dtype).numpy
    for direction in ("left", "right"):
        wanted = [_moved(int(x), int(n), direction, dtype) for x, n in zip(a, b)]
        assert _on_chip(chip, "bit_shift", dtype, a.astype(kind), b.astype(kind), direction=direction) == wanted


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("op", ["max", "min"])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_extremes_of_32_bits_are_exact(chip: str, op: str, data: st.DataObject) -> None:
    words = st.one_of(st.integers(*_limits("i32")), st.sampled_from([*_limits("i32"), 0, -1, 1 << 16, 1 << 24]))
    near = st.integers(-2, 2)
    a = data.draw(st.lists(words, min_size=6, max_size=6))
    b = [min(max(x + data.draw(near), _limits("i32")[0]), _limits("i32")[1]) for x in a[:3]] + a[:2:-1]
    found = _on_chip(chip, op, "i32", np.asarray(a, np.int32), np.asarray(b, np.int32))
    assert found == [{"max": max, "min": min}[op](x, y) for x, y in zip(a, b)]
