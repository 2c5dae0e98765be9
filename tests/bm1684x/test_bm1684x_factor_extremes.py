"""Each column of requantization tables at its extremes, in every form that has one: the program is the op."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from bmcompiler.errors import UnsupportedError
from bmcompiler.ir import TensorType, Value
from bmcompiler.numeric.factors import MOST_MULTIPLIER, MOST_SHIFT, OFFSETS
from bmcompiler.ops.builder import Builder
from bmcompiler.testing import check_op

CHIP = "bm1684x"
MULTIPLIERS = (0, 1, 3, 1 << 30, MOST_MULTIPLIER)
SHIFTS = (0, 1, 15, 31, 37, MOST_SHIFT)
NEAR = (0, 1, -1, 100, -100, 127, -128, 255, -255, 256)
CHANNELS = 84
"""Channels of each net: more than lanes, so that some have two; the rows of a table are gone through in steps."""
RESULTS = ("i8", "u8", "i16")
ENDS = {"i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767)}
Table = np.ndarray[Any, Any]


def tables(columns: int, dtype: str, point: int = 0) -> list[Table]:
    """All rows, `CHANNELS` at a time, with the offsets that a result may have beside its zero point."""
    lowest, highest = (end - point for end in OFFSETS[dtype])
    offsets = [*(number for number in NEAR if lowest <= number <= highest), lowest, highest][
        : None if columns > 2 else 1
    ]
    rows = np.array(list(product(MULTIPLIERS, SHIFTS, offsets)), np.int32)[:, :columns]
    rows = np.resize(rows, (-(-len(rows) // CHANNELS) * CHANNELS, columns))
    mixed = np.random.default_rng(0).permutation(rows)
    return list(mixed.reshape(-1, CHANNELS, columns))


def biases(dtype: str) -> Table:
    """Ends of the type, zeros and what is between."""
    rng = np.random.default_rng(1)
    if dtype == "f32":
        ends = [0, 0.5, -0.5, 127.5, -128.5, 255.5, 3e9, -3e9, 1e-30, -1e-30]
        return np.resize(np.array([*ends, *rng.normal(0, 100, 11)], np.float32), CHANNELS)
    info = np.iinfo({"i16": np.int16, "i32": np.int32}[dtype])
    ends = [0, info.min, info.max, *rng.integers(info.min, info.max, 11)]
    return np.resize(np.array(ends, info.dtype), CHANNELS)


def weights(rng: np.random.Generator, *shape: int) -> Table:
    """Bytes; of some channels all are zero, of some all but one, or all are the largest."""
    made = rng.integers(-128, 128, shape).astype(np.int8)
    made[1::7] = 0
    made[2::7].reshape(len(made[2::7]), -1)[:, 1:] = 0
    made[3::7] = 127
    made[4::7] = -128
    return made


def layer(b: Builder, x: Value, kind: str, dtype: str, bias: Table, rows: Table, more: dict[str, Any]) -> Value:
    """A layer of the mode channel on x (1, channels, 5, 4) or (5, depth)."""
    rng = np.random.default_rng(2)
    depth = x.shape[1]
    shape = {"conv": (CHANNELS, depth, 1, 2), "depthwise": (CHANNELS, 1, 2, 2), "deconv": (depth, CHANNELS, 2, 2)}
    given = weights(rng, *shape.get(kind, (CHANNELS, depth)))
    if kind == "deconv":
        given = np.ascontiguousarray(weights(rng, CHANNELS, depth, 2, 2).swapaxes(0, 1))
    constants = b.weight(given, "w"), b.weight(bias, "b"), b.weight(rows, "t")
    more = {"mode": "channel", **more}
    if kind == "matmul":
        return b.matmul(x, *constants, transpose_right=True, out=TensorType((5, CHANNELS), dtype), **more)
    sizes = {"conv": (5, 3), "depthwise": (4, 3), "deconv": (6, 5)}
    out = TensorType((1, CHANNELS, *sizes[kind]), dtype)
    more |= {"group": CHANNELS} if kind == "depthwise" else {}
    return (b.deconv if kind == "deconv" else b.conv)(x, *constants, out=out, **more)


def check(kind: str, source: str, dtype: str, bias: Table, rows: Table, **more: Any) -> None:
    depth = CHANNELS if kind == "depthwise" else 9
    shape = (5, depth) if kind == "matmul" else (1, depth, 5, 4)
    make = lambda b, x: layer(b, x, kind, dtype, bias, rows, more)  # noqa: E731
    check_op(make, [shape], target=CHIP, quantize="f32", dtype=source, seeds=1, levels=(2,))


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("end", [None, 0, 1])
@pytest.mark.parametrize("dtype", RESULTS)
@pytest.mark.parametrize("kind", ["conv", "depthwise", "deconv", "matmul"])
def test_integer_columns(kind: str, dtype: str, end: int | None, columns: int) -> None:
    """end: at which end of their types the zero points lie."""
    for number, source in enumerate(("i8", "u8")):
        point = 0 if end is None else ENDS[dtype][end]
        more: dict[str, Any] = {"zero_points": (ENDS[source][end], 0, point)} if end is not None else {}
        more |= {"activation": "relu"} if number and end is None else {}
        for rows in tables(columns, dtype, point):
            check(kind, source, dtype, biases("i32"), rows, **more)


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("dtype", RESULTS)
@pytest.mark.parametrize("shift", [None, 0, 3, 8])
def test_integer_columns_behind_a_bias_of_16_bits(shift: int | None, dtype: str, columns: int) -> None:
    for number, source in enumerate(("i8", "u8")):
        more: dict[str, Any] = {} if shift is None else {"narrow": True, "rshift": shift}
        more |= {"activation": "relu"} if number else {}
        for rows in tables(columns, dtype):
            check("depthwise", source, dtype, biases("i16"), rows, **more)


@pytest.mark.parametrize("dtype", RESULTS)
def test_an_offset_that_no_command_takes_is_refused(dtype: str) -> None:
    for outside in (OFFSETS[dtype][0] - 1, OFFSETS[dtype][1] + 1):
        rows = np.array([(1, 0, 0)] * (CHANNELS - 1) + [(1, 0, outside)], np.int32)
        with pytest.raises(UnsupportedError, match="what is added behind the factors"):
            check("conv", "i8", dtype, biases("i32"), rows)


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("dtype", RESULTS)
@pytest.mark.parametrize("kind", ["conv", "depthwise", "deconv"])
def test_real_columns(kind: str, dtype: str, narrow: bool) -> None:
    factors = np.array([2.0**-100, 1e-20, 1e-3, 0.5, 1.0, 3.7, 1e10, 1e30], np.float32)
    for number, source in enumerate(("i8", "u8")):
        rows = np.resize(np.roll(factors, number), (CHANNELS, 1))
        more: dict[str, Any] = {"narrow": True, "rshift": (0, 4)[number]} if narrow else {}
        check(kind, source, dtype, biases("f32"), rows, activation=("", "relu")[number], **more)
