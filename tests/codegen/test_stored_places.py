"""What a step stores keeps its place while later steps compute beside that, where local memory has room."""

from __future__ import annotations

import pytest

from bmcompiler.codegen.groups.places import give_places
from bmcompiler.codegen.groups.steps import Binding, LiveRange, Residency, Step
from bmcompiler.codegen.tiling import Buffer, Tiler, TileWork
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder

ALIGN, STORED, EACH = 16, 100, 30
"""Bytes of an area, cycles of the store, and of each step beside it."""


@pytest.mark.parametrize(("areas", "steps"), [(2, 4), (1, 0)])
def test_later_steps_write_elsewhere_until_it_is_stored(areas: int, steps: int) -> None:
    b = Builder.new("net")
    op = b.relu(b.input("x", TensorType((1, 1, 4, 4), "f32"))).op
    assert op is not None
    stored = LiveRange(ALIGN, 0, 1 if areas > 1 else 0)
    others = [LiveRange(ALIGN, at, at) for at in range(1, 6)]
    work = TileWork((), (), (), lambda *places: None, EACH)
    plan = Residency([Step(op, work) for _ in range(6)], set(), [stored, *others])
    plan.steps[0].outputs.append(Binding(Buffer(ALIGN, "", STORED, lambda build, address: None), stored, True))

    tiler = Tiler(areas * ALIGN, ALIGN, bytes_per_cycle=1, tile_cycles=0)
    assert give_places(plan, tiler) == areas * ALIGN
    apart = [other.address != stored.address for other in others]
    assert apart == [True] * steps + [False] * (len(others) - steps)
