"""Boxes in local memory: copies between them, and boxes in their place, checked element by element."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.chip import Dims, LaneChip
from bmcompiler.codegen.groups.regions import LocalCopier, StridedCopy, inside, joined, whole_of, within
from bmcompiler.codegen.groups.slices import shares
from bmcompiler.codegen.tiling import Box, Contents
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.builder import Builder


class ByteCopier(LocalCopier):
    chip = LaneChip("test", lanes=4, lmem_size=1 << 12, alignment=8)

    def stored(self, value: Value, dims: Dims) -> tuple[Dims, int]:
        return dims, 1

    def emit(self, build: Any, strided: StridedCopy, source: int, target: int) -> None:
        raise AssertionError

    def cycles(self, strided: StridedCopy) -> int:
        return 1


COPIER = ByteCopier()


@st.composite
def boxes(draw: st.DrawFn, outer: Box) -> Box:
    """A box within another; channels begin where the outer ones do, or whole lanes later."""
    found = []
    for axis, (lo, hi) in enumerate(outer):
        step = COPIER.chip.lanes if axis == 1 else 1
        first = lo + step * draw(st.integers(0, (hi - lo - 1) // step))
        found.append((first, draw(st.integers(first + 1, hi))))
    return tuple(found)


@st.composite
def nested(draw: st.DrawFn) -> tuple[Contents, Contents]:
    """A value or a box of it, and a box within."""
    shape = tuple(draw(st.integers(1, most)) for most in (3, 9, 6, 6))
    value = Builder.new("net").input("x", TensorType(shape, "i8"))
    n, c, h, w = shape
    whole: Box = tuple((0, size) for size in shape)
    outer = Contents(value, (n, c, h * w))
    if draw(st.booleans()):
        outer = Contents(value, shape, draw(boxes(whole)))
    return outer, Contents(value, shape, draw(boxes(outer.box or whole)))


def addresses(start: int, strides: Dims, box: Box, at: Box) -> dict[tuple[int, ...], tuple[int, int]]:
    """(lane, byte) of every element of `box`; the first element of `at` lies at `start`."""
    found = {}
    for position in product(*(range(lo, hi) for lo, hi in box)):
        n, c, h, w = (p - lo for p, (lo, _) in zip(position, at))
        row, lane = divmod(c, COPIER.chip.lanes)
        found[position] = lane, start + n * strides[0] + row * strides[1] + h * strides[2] + w * strides[3]
    return found


def box_of(contents: Contents) -> Box:
    return contents.box or tuple((0, size) for size in contents.value.shape)


def layout(contents: Contents) -> dict[tuple[int, ...], tuple[int, int]]:
    box = box_of(contents)
    n, c, h, w = (hi - lo for lo, hi in box)
    return addresses(0, COPIER.chip.strides((n, c, h, w)), box, box)


@settings(max_examples=60, deadline=None)
@given(nested())
def test_copies_touch_the_elements_of_both_sides(pair: tuple[Contents, Contents]) -> None:
    outer, inner = pair
    assert inside(inner, outer)
    box = box_of(inner)
    for source, target in ((outer, inner), (inner, outer)):
        strided = COPIER.copy(source, target)
        assert strided is not None
        assert strided.shape == tuple(hi - lo for lo, hi in box)
        assert addresses(*strided.source, box, box) == {at: layout(source)[at] for at in layout(inner)}
        assert addresses(*strided.target, box, box) == {at: layout(target)[at] for at in layout(inner)}
        assert (strided.source_bytes, strided.target_bytes) == (COPIER.lane_bytes(source), COPIER.lane_bytes(target))


@settings(max_examples=60, deadline=None)
@given(nested())
def test_a_box_in_its_place_lies_like_a_tensor_of_its_own(pair: tuple[Contents, Contents]) -> None:
    outer, inner = pair
    offset = COPIER.offset(outer, inner)
    if offset is None:
        return
    assert offset % COPIER.chip.alignment == 0
    assert offset + COPIER.lane_bytes(inner) <= COPIER.lane_bytes(outer)
    whole = layout(outer)
    for at, (lane, byte) in layout(inner).items():
        assert whole[at] == (lane, byte + offset)


def test_images_and_groups_of_lanes_are_read_in_their_place() -> None:
    value = Builder.new("net").input("x", TensorType((3, 8, 5, 5), "i8"))
    whole = Contents(value, (3, 8, 25))
    assert COPIER.offset(whole, Contents(value, value.shape, ((1, 3), (0, 8), (0, 5), (0, 5)))) == 64
    assert COPIER.offset(whole, Contents(value, value.shape, ((1, 2), (4, 8), (0, 5), (0, 5)))) == 96
    assert COPIER.offset(whole, Contents(value, value.shape, ((0, 1), (0, 8), (1, 5), (0, 5)))) is None
    assert COPIER.copy(whole, Contents(value, value.shape, ((0, 1), (2, 8), (0, 5), (0, 5)))) is None


@given(st.integers(1, 24), st.integers(1, 9), st.data())
def test_two_layouts_of_a_whole_are_one_where_every_row_lies_alike(rows: int, size: int, data: st.DataObject) -> None:
    value, lanes = Builder.new("net").input("x", TensorType((rows, size), "i8")), COPIER.chip.lanes
    images = [data.draw(st.sampled_from([n for n in range(1, rows + 1) if rows % n == 0])) for _ in range(2)]

    def places(n: int) -> list[tuple[int, int]]:
        image, row, _, _ = COPIER.chip.strides((n, rows // n, 1, size))
        return [(at % lanes, i * image + at // lanes * row) for i in range(n) for at in range(rows // n)]

    outer, inner = (Contents(value, (n, rows // n, size)) for n in images)
    assert COPIER.offset(outer, inner) == (0 if places(images[0]) == places(images[1]) else None)


@given(nested(), nested())
def test_boxes_know_what_lies_in_them(a: tuple[Contents, Contents], b: tuple[Contents, Contents]) -> None:
    outer, inner = a
    assert inside(outer, outer)
    assert inside(inner, whole_of(inner))
    assert inside(outer, inner) == (box_of(outer) == box_of(inner) and outer.layout == inner.layout)
    assert not inside(inner, b[0])
    around = joined(box_of(inner), box_of(b[1]))
    assert within(box_of(inner), around)
    assert within(box_of(b[1]), around)


@given(st.tuples(*[st.integers(1, 20)] * 4), st.tuples(*[st.integers(1, 4)] * 4), st.integers(1, 4))
def test_shares_are_the_whole_without_overlap(shape: Dims, slices: Dims, grain: int) -> None:
    count = np.zeros(shape, int)
    found = list(shares(shape, slices, (grain, 1, 1, 1)))
    assert len(found) == np.prod(slices)
    for box in found:
        if box is not None:
            count[tuple(slice(lo, hi) for lo, hi in box)] += 1
            assert box[0][0] % grain == 0
    assert (count == 1).all()
