"""Strided copies as GDMA commands: equal to numpy, within the limits of the fields of each chip, few."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.chip import COPY_LIMITS as BM1684
from bmcompiler.backends.bm1880.chip import COPY_LIMITS as BM1880
from bmcompiler.codegen.strided_copy import CopyCommand, CopyLimits, Dim, copy_commands, count_commands

CHIPS = st.sampled_from([BM1880, BM1684])


def commands(dims: list[Dim], limits: CopyLimits) -> list[CopyCommand]:
    """The commands, checked against the limits of one command."""
    found = list(copy_commands(dims, limits))
    for command in found:
        assert all(1 <= size <= limits.extent for size in command.shape)
        assert max(command.src_strides[2], command.dst_strides[2]) <= limits.h
        assert min(*command.src_strides, *command.dst_strides) >= 0
        assert limits.w_source[0] <= command.src_strides[3] <= limits.w_source[1]
        assert limits.w_target[0] <= command.dst_strides[3] <= limits.w_target[1]
    assert sum(prod(command.shape) for command in found) == prod(dim.size for dim in dims)
    assert count_commands(dims, limits) == len(found)
    return found


def run(found: list[CopyCommand], source: np.ndarray, size: int) -> np.ndarray:
    out = np.zeros(size, np.uint8)
    for c in found:
        to = np.lib.stride_tricks.as_strided(out[c.dst :], c.shape, c.dst_strides)
        to[...] = np.lib.stride_tricks.as_strided(source[c.src :], c.shape, c.src_strides)
    return out


def packed(shape: tuple[int, ...]) -> list[int]:
    return [prod(shape[i + 1 :]) for i in range(len(shape))]


@settings(max_examples=200, deadline=None)
@given(CHIPS, st.lists(st.integers(1, 5), min_size=1, max_size=7), st.data())
def test_copies_equal_numpy(limits: CopyLimits, shape: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    gap = data.draw(st.integers(1, 3))
    source = np.arange(prod(shape) * gap).astype(np.uint8)
    strides = [s * gap for s in packed(tuple(shape))]
    result = tuple(shape[axis] for axis in order)
    dims = [Dim(shape[axis], strides[axis], stride) for axis, stride in zip(order, packed(result))]
    want = source[::gap].reshape(shape).transpose(order).reshape(-1)
    np.testing.assert_array_equal(run(commands(dims, limits), source, want.size), want)


@settings(max_examples=200, deadline=None)
@given(CHIPS, st.lists(st.tuples(st.integers(1, 4), st.integers(-3, 3)), min_size=1, max_size=6))
def test_axes_run_backwards_and_repeat(limits: CopyLimits, axes: list[tuple[int, int]]) -> None:
    shape = tuple(size for size, _ in axes)
    source = np.arange(250).astype(np.uint8)
    start = -sum(min(0, step) * (size - 1) for size, step in axes)
    dims = [Dim(size, step, stride) for (size, step), stride in zip(axes, packed(shape))]
    moved = [CopyCommand(c.dst, c.src + start, c.shape, c.dst_strides, c.src_strides) for c in commands(dims, limits)]
    want = np.lib.stride_tricks.as_strided(source[start:], shape, [step for _, step in axes]).reshape(-1)
    np.testing.assert_array_equal(run(moved, source, want.size), want)


@pytest.mark.parametrize("limits", [BM1880, BM1684])
@pytest.mark.parametrize("size", [65535, 65536, 65537, 131071, 200003, 802816])
def test_long_runs(size: int, limits: CopyLimits) -> None:
    source = np.arange(size).astype(np.uint8)
    found = commands([Dim(size, 1, 1)], limits)
    assert len(found) <= 2
    np.testing.assert_array_equal(run(found, source, size), source)


@pytest.mark.parametrize(
    ("dims", "count"),
    [
        ([Dim(2, 60, 60), Dim(3, 20, 20), Dim(20, 1, 1)], 1),
        ([Dim(2, 70, 60), Dim(3, 20, 20), Dim(20, 1, 1)], 1),
        ([Dim(1, 1, 1)], 1),
        ([], 1),
        # the short axis becomes h because the others have strides above 65535
        ([Dim(9, 1000000, 3), Dim(10, 70000, 9000000), Dim(3, 7, 1)], 1),
        ([Dim(2, 800000, 3), Dim(10, 70000, 9000000), Dim(9, 90000, 70000), Dim(4, 5, 7)], 2),
        # no axis may be h: the shortest is looped over
        ([Dim(4, 800000, 300000), Dim(3, 70000, 9000000), Dim(9, 90000, 70000), Dim(5, 1, 1)], 3),
        ([Dim(70000, 3, 2), Dim(2, 1, 1)], 1),
    ],
)
def test_few_commands_on_bm1880(dims: list[Dim], count: int) -> None:
    assert len(commands(dims, BM1880)) == count


@pytest.mark.parametrize(
    ("dims", "count"),
    [
        ([Dim(4, 800000, 300000), Dim(3, 70000, 9000000), Dim(9, 90000, 70000), Dim(5, 1, 1)], 1),
        # the long source stride goes to h, the axis of neighbours in the source becomes w
        ([Dim(2, 60000, 60000), Dim(3000, 1, 20), Dim(20, 3000, 1)], 1),
        ([Dim(3000, 1, 20), Dim(20, 4096, 1)], 1),
        # upsampling by (2, 3): rows of all images and channels, 2, columns, 3
        ([Dim(8, 35, 210), Dim(5, 7, 42), Dim(2, 0, 21), Dim(7, 1, 3), Dim(3, 0, 1)], 1),
        # no axis has a source stride below 4096
        ([Dim(2, 5000, 24), Dim(3, 20000, 8), Dim(2, 5, 4), Dim(4, 70000, 1)], 1),
        ([Dim(2, 5000, 24), Dim(3, 20000, 8), Dim(2, 9000, 4), Dim(4, 70000, 1)], 2),
        ([Dim(6, -1, 1)], 6),
    ],
)
def test_few_commands_on_bm1684(dims: list[Dim], count: int) -> None:
    assert len(commands(dims, BM1684)) == count
