"""Boxes in local memory: copies between them, and boxes in their place, checked element by element."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.chip import Dims, LaneChip
from bmcompiler.codegen.groups.regions import Move, Mover, inside, joined, whole_of, within
from bmcompiler.codegen.groups.slices import shares
from bmcompiler.codegen.tiling import Box, Held
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.builder import Builder


class ByteMover(Mover):
    chip = LaneChip("test", lanes=4, lmem_size=1 << 12, alignment=8)

    def stored(self, value: Value, dims: Dims) -> tuple[Dims, int]:
        return dims, 1

    def emit(self, build: Any, move: Move, source: int, target: int) -> None:
        raise AssertionError

    def cycles(self, move: Move) -> int:
        return 1


MOVER = ByteMover()


@st.composite
def boxes(draw: st.DrawFn, outer: Box) -> Box:
    """A box within another; channels begin where the outer ones do, or whole lanes later."""
    found = []
    for axis, (lo, hi) in enumerate(outer):
        step = MOVER.chip.lanes if axis == 1 else 1
        first = lo + step * draw(st.integers(0, (hi - lo - 1) // step))
        found.append((first, draw(st.integers(first + 1, hi))))
    return tuple(found)


@st.composite
def nested(draw: st.DrawFn) -> tuple[Held, Held]:
    """A value or a box of it, and a box within."""
    shape = tuple(draw(st.integers(1, most)) for most in (3, 9, 6, 6))
    value = Builder.new("net").input("x", TensorType(shape, "i8"))
    n, c, h, w = shape
    whole: Box = tuple((0, size) for size in shape)
    outer = Held(value, (n, c, h * w))
    if draw(st.booleans()):
        outer = Held(value, shape, draw(boxes(whole)))
    return outer, Held(value, shape, draw(boxes(outer.box or whole)))


def addresses(start: int, strides: Dims, box: Box, at: Box) -> dict[tuple[int, ...], tuple[int, int]]:
    """(lane, byte) of every element of `box`; the first element of `at` lies at `start`."""
    found = {}
    for position in product(*(range(lo, hi) for lo, hi in box)):
        n, c, h, w = (p - lo for p, (lo, _) in zip(position, at))
        row, lane = divmod(c, MOVER.chip.lanes)
        found[position] = lane, start + n * strides[0] + row * strides[1] + h * strides[2] + w * strides[3]
    return found


def box_of(held: Held) -> Box:
    return held.box or tuple((0, size) for size in held.value.shape)


def layout(held: Held) -> dict[tuple[int, ...], tuple[int, int]]:
    box = box_of(held)
    n, c, h, w = (hi - lo for lo, hi in box)
    return addresses(0, MOVER.chip.strides((n, c, h, w)), box, box)


@settings(max_examples=60, deadline=None)
@given(nested())
def test_copies_touch_the_elements_of_both_sides(pair: tuple[Held, Held]) -> None:
    outer, inner = pair
    assert inside(inner, outer)
    box = box_of(inner)
    for source, target in ((outer, inner), (inner, outer)):
        move = MOVER.move(source, target)
        assert move is not None
        assert move.shape == tuple(hi - lo for lo, hi in box)
        assert addresses(*move.source, box, box) == {at: layout(source)[at] for at in layout(inner)}
        assert addresses(*move.target, box, box) == {at: layout(target)[at] for at in layout(inner)}
        assert (move.source_bytes, move.target_bytes) == (MOVER.lane_bytes(source), MOVER.lane_bytes(target))


@settings(max_examples=60, deadline=None)
@given(nested())
def test_a_box_in_its_place_lies_like_a_tensor_of_its_own(pair: tuple[Held, Held]) -> None:
    outer, inner = pair
    offset = MOVER.offset(outer, inner)
    if offset is None:
        return
    assert offset % MOVER.chip.alignment == 0
    assert offset + MOVER.lane_bytes(inner) <= MOVER.lane_bytes(outer)
    whole = layout(outer)
    for at, (lane, byte) in layout(inner).items():
        assert whole[at] == (lane, byte + offset)


def test_images_and_groups_of_lanes_are_read_in_their_place() -> None:
    value = Builder.new("net").input("x", TensorType((3, 8, 5, 5), "i8"))
    whole = Held(value, (3, 8, 25))
    assert MOVER.offset(whole, Held(value, value.shape, ((1, 3), (0, 8), (0, 5), (0, 5)))) == 64
    assert MOVER.offset(whole, Held(value, value.shape, ((1, 2), (4, 8), (0, 5), (0, 5)))) == 96
    assert MOVER.offset(whole, Held(value, value.shape, ((0, 1), (0, 8), (1, 5), (0, 5)))) is None
    assert MOVER.move(whole, Held(value, value.shape, ((0, 1), (2, 8), (0, 5), (0, 5)))) is None


@given(nested(), nested())
def test_boxes_know_what_lies_in_them(a: tuple[Held, Held], b: tuple[Held, Held]) -> None:
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
