"""The suite looks for races in all that it compiles: one is noticed, and no program is checked twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from race_watch import CHIPS, RaceWatch, checking

from bmcompiler.analysis.profile import find_analyzer
from bmcompiler.backends.bm1684 import isa as bm1684
from bmcompiler.backends.bm1880 import isa as bm1880
from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.bmodel.bm168x import Bm168xModel, CommandGroup, TpuSubnet
from bmcompiler.bmodel.bm1880 import Bm1880Model
from bmcompiler.instructions.order import STREAMS
from bmcompiler.ir import Module, Quant, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.target import Compiled, find_target

WAIT_ID = {bm1880.Engine.TPU: "cmd_id_gdma", bm1880.Engine.GDMA: "cmd_id_tpu"}


def net(size: int) -> Module:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 3, size, size), "i8", Quant(1 / 64)))
    with b.at("positive"):
        return b.outputs([b.relu(x)], ["y"])


def without_waits(model: Any) -> Any:
    """The first program with wait ids of 0."""
    if isinstance(model, Bm1880Model):
        cmdbuf = bytearray(model.commands[0].cmdbuf)
        index = records(bytes(cmdbuf))
        for number, at, size in zip(index.engine.tolist(), index.offset.tolist(), index.length.tolist()):
            engine = bm1880.Engine(number)
            fields = bm1880.FORMATS[engine].unpack(bytes(cmdbuf[at : at + size])) | {WAIT_ID[engine]: 0}
            cmdbuf[at : at + size] = bm1880.FORMATS[engine].pack(fields)
        return replace(model, commands=[replace(model.commands[0], cmdbuf=bytes(cmdbuf))])
    assert isinstance(model, Bm168xModel)
    stage = model.nets[0].stages[0]
    (subnet,) = stage.subnets
    assert isinstance(subnet, TpuSubnet)
    groups = [CommandGroup(*(_no_wait(engine, group[engine]) for engine in STREAMS)) for group in subnet.groups]
    stages = [replace(stage, subnets=[replace(subnet, groups=groups)])]
    return replace(model, nets=[replace(model.nets[0], stages=stages)])


def _no_wait(engine: bm1684.Engine, commands: bytes) -> bytes:
    columns = bm1684.FORMATS[engine].decode(np.frombuffer(commands, np.uint8))
    columns[bm1684.WAIT_ID[engine]][:] = 0
    return bm1684.FORMATS[engine].encode(columns).tobytes()


@pytest.mark.parametrize("chip", CHIPS)
def test_a_program_is_checked_once(chip: str, race_watch: RaceWatch) -> None:
    target, before = find_target(chip), set(race_watch.checked)
    target.compile([net(21)], 2)
    (digest,) = race_watch.checked - before
    target.compile([net(21)], 2)
    assert race_watch.checked == before | {digest}


@pytest.mark.parametrize("chip", CHIPS)
def test_a_race_fails_the_test_that_compiles_it(chip: str, races_allowed: None) -> None:
    def compile(target: Any, modules: Sequence[Module], level: int) -> Compiled:
        compiled = target.compile(modules, level)
        compiled.model = without_waits(compiled.model)
        return compiled

    analyze, watch = find_analyzer(chip), RaceWatch()
    assert analyze is not None
    compile_and_check = checking(compile, analyze, CHIPS[chip], watch)
    said = rf"{chip}, --opt 2, program 0: command 0 .* of layer 'positive'\) are not ordered"
    with pytest.raises(pytest.fail.Exception, match=said):
        compile_and_check(find_target(chip), [net(22)], 2)
    watch.paused = True
    compile_and_check(find_target(chip), [net(22)], 2)
    assert not watch.checked
