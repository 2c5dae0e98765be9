"""Typed instructions: they do what numpy does, and touch no bytes but those they name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from recipe_chip import Tiu

from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.lanes.facts import Strides
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.runtime.simulator.bm1684 import Memories, compile_plan

ROOM = 4096
"""Bytes of a lane for each operand."""
SHAPES = st.tuples(st.integers(1, 2), st.sampled_from([1, 3, 64, 70]), st.integers(1, 4), st.integers(1, 5))
GAPS = st.tuples(st.integers(1, 2), st.integers(0, 3), st.integers(0, 2))
property_test = settings(max_examples=8, deadline=None)
Array = np.ndarray[Any, np.dtype[np.float32]]


def spread(address: int, shape: tuple[int, int, int, int], gaps: tuple[int, int, int]) -> Words:
    """A tensor with some words between columns, rows and rows of channels."""
    _, c, h, w = shape
    column, row = gaps[0], gaps[0] * w + gaps[1]
    channel = row * h + gaps[2]
    strides: Strides = (channel * CHIP.channel_rows(0, c), channel, row, column)
    return Words(address, shape, strides)


def lanes_of(memories: Memories) -> Any:
    """The first words of all lanes."""
    return memories.local_tensor(local_address(0), (1, CHIP.lanes, 1, ROOM), (0, 0, 4 * ROOM, 4), np.dtype(np.float32))


def run(emit: Callable[[Tiu], None], seed: int, *reads: Words) -> tuple[Memories, list[Array]]:
    """(the chip afterwards, what the operands held before); local memory begins as random numbers."""
    memories, build = Memories(), Tiu()
    memory = lanes_of(memories)
    memory.write(np.random.default_rng(seed).standard_normal((1, CHIP.lanes, 1, ROOM)).astype(np.float32))
    before = memory.read().copy()
    held = [tensor(memories, words).read().copy() for words in reads]
    emit(build)
    compile_plan(build.builder.groups(), memories).run()
    after = memory.read()
    ((_, writes),) = build.commands
    changed = np.flatnonzero((before.view(np.int32) != after.view(np.int32)).any((0, 1, 2)))
    first, end = writes[0]
    assert not changed.size or first <= 4 * changed[0] <= 4 * changed[-1] < end
    return memories, held


def tensor(memories: Memories, words: Words) -> Any:
    """A tensor of words as an array that reads and writes."""
    assert words.strides is not None
    n, c, h, w = (4 * step for step in words.strides)
    return memories.local_tensor(
        local_address(words.address, words.lane), words.shape, (n, c, h, w), np.dtype(np.float32)
    )


@property_test
@given(SHAPES, GAPS, GAPS, GAPS, st.sampled_from(["add", "mul", "sub"]), st.integers(0, 99))
def test_arithmetic_between_strided_tensors(
    shape: tuple[int, int, int, int],
    x: tuple[int, int, int],
    y: tuple[int, int, int],
    z: tuple[int, int, int],
    name: str,
    seed: int,
) -> None:
    a, b, out = spread(0, shape, x), spread(ROOM, shape, y), spread(2 * ROOM, shape, z)
    memories, (left, right) = run(lambda build: build.combine(Unit[name.upper()], out, a, b), seed, a, b)
    expected = {"add": np.add, "mul": np.multiply, "sub": np.subtract}[name](left, right)
    np.testing.assert_array_equal(tensor(memories, out).read(), expected)


@property_test
@given(SHAPES, GAPS, GAPS, st.integers(0, 99))
def test_weighted_sums_add_to_what_is_there(
    shape: tuple[int, int, int, int], x: tuple[int, int, int], z: tuple[int, int, int], seed: int
) -> None:
    a, out = spread(0, shape, x), spread(2 * ROOM, shape, z)
    memories, (source, old) = run(lambda build: build.weigh(out, a, a, True), seed, a, out)
    np.testing.assert_array_equal(tensor(memories, out).read(), source * source + old)


@property_test
@given(SHAPES, GAPS, GAPS, st.integers(0, 5), st.integers(0, 99))
def test_transfers_reach_other_lanes(
    shape: tuple[int, int, int, int], x: tuple[int, int, int], z: tuple[int, int, int], lane: int, seed: int
) -> None:
    n, c, h, w = shape
    a = spread(0, (n, min(c, 50), h, w), x)
    out = spread(2 * ROOM, a.shape, z)._replace(lane=lane)
    memories, (source,) = run(lambda build: build.transfer(a, out), seed, a)
    np.testing.assert_array_equal(tensor(memories, out).read(), source)


def test_fills_and_copies() -> None:
    shape = (2, 70, 3, 4)
    a, out = spread(0, shape, (1, 2, 0)), spread(2 * ROOM, shape, (2, 0, 1))
    memories, (source,) = run(lambda build: build.copy(a, out), 1, a)
    np.testing.assert_array_equal(tensor(memories, out).read(), source)
    memories, _ = run(lambda build: build.fill(out, 0x4000_0000), 1)
    assert (tensor(memories, out).read() == 2).all()


def test_a_part_of_a_buffer_may_count_as_all_of_it() -> None:
    build = Tiu()
    part = Words(256, (1, 64, 1, 8), within=(128, 1024))
    build.combine(Unit.ADD, part, part, Immediate(0))
    assert build.commands == [([(128, 1024)], [(128, 1024)])]
