"""A choice between a tensor and what repeats along its last axis, as masks make it: quick, with every bit as it is."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.result import Result

CHIPS = ("bm1684", "bm1684x")


def _chosen(chip: str, dtype: str, *shapes: tuple[int, ...]) -> Result:
    b = Builder.new("net")
    inputs = [
        b.input(name, TensorType(shape, kind)) for name, shape, kind in zip("cab", shapes, ("bool", dtype, dtype))
    ]
    result = bmcompiler.compile_module(b.outputs([b.where(*inputs)], ["y"]), target=chip, check="never")
    assert all(row.where == chip for row in result.rows)
    return result


@pytest.mark.parametrize("chip", CHIPS)
def test_a_number_takes_no_longer_than_a_tensor(chip: str) -> None:
    shape = (1, 12, 64, 64)
    taken = []
    for other in ((1, 1, 1, 1), (), (1, 12, 64, 1), shape):
        timing = estimate(_chosen(chip, "f32", shape, shape, other))
        assert timing is not None
        taken.append(timing.cycles)
    assert max(taken[:2]) <= taken[-1] and max(taken) <= 8 * taken[-1], taken


@pytest.mark.parametrize("dtype", ["f32", "i32", "i16", "u8"])
@pytest.mark.parametrize("chip", CHIPS)
def test_bits_stay_whatever_repeats(chip: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for shapes in (
        ((3, 5, 1), (1,), (3, 5, 7)),
        ((1,), (3, 5, 7), (5, 1)),
        ((1, 2, 40, 3), (1, 2, 1, 1), (1, 1, 40, 1)),
    ):
        kind = TensorType((), dtype).numpy
        condition = rng.integers(0, 2, shapes[0]).astype(np.uint8)
        a, b = (
            rng.integers(0, 256, (int(np.prod(s)), kind.itemsize), np.uint8).view(kind).reshape(s) for s in shapes[1:]
        )
        found = _chosen(chip, dtype, *shapes).session().run({"c": condition, "a": a, "b": b}, raw=True)["y"]
        assert found.tobytes() == np.ascontiguousarray(np.where(condition.astype(bool), a, b)).tobytes()
