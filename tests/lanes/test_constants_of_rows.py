"""Constants beside the rows of attention: what a slice of rows loads of them is not what the next one needs.

Rows of scores are cut into slices of unlike heights; constants vary along any of heads, rows and columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder

HEADS, ROWS, DEPTH = 2, 1344, 4
SHAPES = [shape for shape in product((1, HEADS), (1, ROWS), (1, ROWS)) if shape != (1, 1, 1)]


def attention(shape: tuple[int, ...], kind: str) -> Module:
    """softmax(q k * or + constant) v of two heads."""
    b, random = Builder.new("net"), np.random.default_rng(sum(shape))
    q, k, v = (
        b.input(name, TensorType((1, HEADS, *size)))
        for name, size in (("q", (ROWS, DEPTH)), ("k", (DEPTH, ROWS)), ("v", (ROWS, DEPTH)))
    )
    factors = b.weight(np.float32(random.uniform(0.5, 2, (1, *shape))), "factors")
    scores = getattr(b, kind)(b.matmul(q, k), factors)
    return b.outputs([b.matmul(b.softmax(scores, axis=3), v)], ["out"])


MODES = ("bm1684", "f32"), ("bm1684x", "f32"), ("bm1684x", "f16")


def cases() -> Iterator[Any]:
    """All, of which every run of the tests has each shape once, and each mode by turns."""
    for number, ((turn, shape), mode) in enumerate(product(enumerate(SHAPES), MODES)):
        marks = [] if mode == MODES[turn % len(MODES)] else [pytest.mark.sweep]
        yield pytest.param(shape, ("mul", "add")[number % 2], *mode, marks=marks)


@pytest.mark.parametrize("shape, kind, chip, precision", list(cases()))
def test_slices_of_rows_have_their_constants(shape: tuple[int, ...], kind: str, chip: str, precision: str) -> None:
    made = bmcompiler.compile_module(attention(shape, kind), target=chip, quantize=precision, check="always")
    assert made.checked
