"""Inputs of a step that are slower from the same bank move apart where local memory has room."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from bmcompiler.codegen.groups.banks import move_apart, shared_cycles
from bmcompiler.codegen.groups.steps import Binding, LiveRange, Residency, Step
from bmcompiler.codegen.tiling import Apart, Buffer, Tiler, TileWork
from bmcompiler.ir import Operation

BANK = 1024
ROOM = 4 * BANK


def convolution(sizes: tuple[int, int], cycles: int = 1000) -> tuple[Step, list[LiveRange]]:
    """A step with an input and weights, side by side from the first byte on."""
    buffers = tuple(Buffer(size, "c", size, lambda build, address: None) for size in sizes)
    ranges = [LiveRange(sizes[0], 0, 0, address=0), LiveRange(sizes[1], 0, 0, address=sizes[0])]
    work = TileWork(buffers, (), (), lambda *places: None, 100, (Apart(0, 1, cycles),))
    step = Step(Operation("test.conv", (), (), {}), work)
    step.inputs = [Binding(buffer, live_range, True) for buffer, live_range in zip(buffers, ranges)]
    return step, ranges


def moved(step: Step, ranges: list[LiveRange]) -> float:
    move_apart(Residency([step], live_ranges=ranges), Tiler(ROOM, 64, bank_bytes=BANK))
    spans = sorted((one.address, one.address + one.lane_bytes) for one in ranges if one.last >= 0)
    assert spans[0][0] >= 0 and spans[-1][1] <= ROOM
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    return shared_cycles(step, BANK)


@pytest.mark.parametrize("sizes", [(256, 256), (512, 1024), (1984, 64), (1024, 2048)])
def test_what_has_room_gets_banks_of_its_own(sizes: tuple[int, int]) -> None:
    assert moved(*convolution(sizes)) == 0


def test_the_cost_is_the_share_in_common_banks() -> None:
    step, _ = convolution((512, 1024))
    assert shared_cycles(step, BANK) == 1000 * 0.5  # all of one, half of the other


def test_a_part_of_an_area_lies_behind_where_that_begins() -> None:
    """The input is a part of a concatenation in two banks: it meets the weights only if it is the second one."""
    step, ranges = convolution((512, 1024))
    ranges[0].address, ranges[1].address = 512, 1536
    shares = []
    for offset in (0, 256, 512):
        step.inputs[0] = replace(step.inputs[0], offset=offset)
        shares.append(shared_cycles(step, BANK))
    assert shares == [0, 250, 500]


def test_what_others_have_stays_theirs() -> None:
    step, ranges = convolution((512, 512))
    ranges.append(LiveRange(ROOM - 2048, 0, 3, address=2048))  # leaves the second bank
    assert moved(step, ranges) == 0
    assert 1024 <= ranges[1].address <= 1536
