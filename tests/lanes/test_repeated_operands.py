"""Operands that repeat, on either side and of any type: little slower than whole tensors, with every bit as it is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.result import Result

Shape = tuple[int, ...]
WHOLE = (1, 12, 64, 64)
REPEATED: tuple[Shape, ...] = ((1,), (64, 1), (1, 12, 1, 1), (1, 1, 1, 64))
DRAWN = sorted(product(("max", "min", "div", "mod"), ("i32", "u32", "i16", "u8", "f32"), REPEATED, (False, True)))
CHIPS = ("bm1684", "bm1684x")


def _compiled(chip: str, op: str, dtype: str, *shapes: Shape) -> Result:
    b = Builder.new("net")
    inputs = [b.input(name, TensorType(shape, dtype)) for name, shape in zip("ab", shapes)]
    result = bmcompiler.compile_module(b.outputs([b.create(op, inputs).result], ["y"]), target=chip, check="never")
    assert all(row.where == chip for row in result.rows)
    return result


def _cycles(chip: str, op: str, dtype: str, *shapes: Shape) -> int:
    timing = estimate(_compiled(chip, op, dtype, *shapes))
    assert timing is not None
    return timing.cycles


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    ("op", "dtype", "repeated", "first"),
    [*(("max", dtype, (1,), True) for dtype in ("i32", "i8")), *(DRAWN[i] for i in range(5, len(DRAWN), 19))],
)
def test_what_repeats_takes_no_longer_than_elements(
    chip: str, op: str, dtype: str, repeated: Shape, first: bool
) -> None:
    """A number that i32 was compared with took 50 times as long, in either order."""
    shapes = (repeated, WHOLE) if first else (WHOLE, repeated)
    assert _cycles(chip, op, dtype, *shapes) <= 4 * _cycles(chip, op, dtype, WHOLE, WHOLE)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", ["i32", "i16", "u16", "i8", "u8"])
@pytest.mark.parametrize("chip", CHIPS)
def test_extremes_of_what_repeats_are_exact(chip: str, dtype: str, op: str) -> None:
    limits = np.iinfo(TensorType((), dtype).numpy)
    rng = np.random.default_rng(1)
    for shapes in (((3, 5, 7), (1,)), ((5, 1), (3, 5, 7))):
        a, b = (rng.integers(limits.min, limits.max, s, limits.dtype, endpoint=True) for s in shapes)
        a.flat[0], b.flat[0] = limits.min, limits.max
        found = _compiled(chip, op, dtype, *shapes).session().run({"a": a, "b": b}, raw=True)["y"]
        assert np.array_equal(found, (np.maximum if op == "max" else np.minimum)(a, b))
