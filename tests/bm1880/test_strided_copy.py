"""Strided copies as GDMA commands: equal to numpy, within the limits of the fields, few."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1880.strided_copy import CopyCommand, Dim, copy_commands


def commands(dims: list[Dim]) -> list[CopyCommand]:
    """The commands, checked against the limits of one command."""
    found = list(copy_commands(dims))
    for command in found:
        assert all(1 <= size <= 65535 for size in command.shape)
        assert max(command.src_strides[2], command.dst_strides[2]) <= 65535
        assert command.src_strides[3] == command.dst_strides[3] == 1
    assert sum(prod(command.shape) for command in found) == prod(dim.size for dim in dims)
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
@given(st.lists(st.integers(1, 5), min_size=1, max_size=7), st.data())
def test_copies_equal_numpy(shape: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    gap = data.draw(st.integers(1, 3))
    source = np.arange(prod(shape) * gap).astype(np.uint8)
    strides = [s * gap for s in packed(tuple(shape))]
    result = tuple(shape[axis] for axis in order)
    dims = [Dim(shape[axis], strides[axis], stride) for axis, stride in zip(order, packed(result))]
    want = source[::gap].reshape(shape).transpose(order).reshape(-1)
    np.testing.assert_array_equal(run(commands(dims), source, want.size), want)


@pytest.mark.parametrize("size", [65535, 65536, 65537, 131071, 200003, 802816])
def test_long_runs(size: int) -> None:
    source = np.arange(size).astype(np.uint8)
    found = commands([Dim(size, 1, 1)])
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
def test_few_commands(dims: list[Dim], count: int) -> None:
    assert len(commands(dims)) == count
