"""Damaged programs: listing, race check, timing and trace work or raise an error of ours."""

from __future__ import annotations

from contextlib import suppress

import pytest
from bm1684_nets import Net
from bm1684_programs import analysed, model, relu_tiles
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.asm import listing
from bmcompiler.backends.bm1684.build import CommandBuilder
from bmcompiler.backends.bm1684.chip import local_address
from bmcompiler.backends.bm1684.isa import Eu, Task
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.bmodel.bm168x import CommandGroup, TpuSubnet
from bmcompiler.errors import BMError, SimulatorError
from bmcompiler.runtime.simulator.bm1684.analysis import analyze


def programs() -> list[CommandGroup]:
    net = Net([(2, 5, 4, 4)])
    hidden = net.b.sigmoid(net.b.conv(net.inputs[0], net.f32(9, 5, 3, 3), net.f32(9), pads=(1, 1, 1, 1)))
    stage = TARGET.compile([net.module([hidden])], 2).model.nets[0].stages[0]
    return [*stage.groups, *relu_tiles(parallel=True)]


GROUPS = programs()


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(GROUPS), st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_commands_are_analysed_or_refused(group: CommandGroup, changes: list[tuple[float, int]]) -> None:
    data = bytearray(group.tiu + group.gdma)
    for where, value in changes:
        data[int(where * len(data))] = value
    damaged = CommandGroup(bytes(data[: len(group.tiu)]), bytes(data[len(group.tiu) :]))
    found = model(TpuSubnet([damaged], [], []))
    listing(found)
    for look in ("races", "timing", "trace"):
        with suppress(BMError):
            getattr(analyze(found), look)()


@pytest.mark.parametrize(
    "task", [Task.SFU, Task.LINEAR, Task.SCALAR, Task.TENSOR, Task.COMPARE, Task.VECTOR_CORRELATION]
)
def test_operations_that_do_not_exist_are_refused(task: Task) -> None:
    build = CommandBuilder()
    local = {f"{name}_addr": local_address(0) for name in ("res0", "opd0", "opd1", "opd2")}
    build.tiu(tsk_typ=task, tsk_eu_typ=len(Eu) + 3, **local)
    with pytest.raises(SimulatorError, match=r"command 0 \(TIU\): operation 28 does not exist"):
        analysed(build.groups()).races()
