"""BM1880 programs with groups: of every wait that is dropped, the races that it prevented are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from happens_before import conflicting, races_by_definition, races_found
from programs import waits, with_wait

from bmcompiler.backends.bm1880.target import TARGET
from bmcompiler.ir import Module, Quant, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.schedule.group_layers import GroupLayers
from bmcompiler.passmanager import PassContext
from bmcompiler.runtime.simulator.bm1880.analysis import analyze
from bmcompiler.target import Compiled


def residual() -> Module:
    """Two blocks with a sum and a pooling between them."""
    rng, b = np.random.default_rng(0), Builder.new("net")

    def conv(x: Value, channels: int, kernel: int = 3) -> Value:
        weight = b.weight(rng.integers(-128, 128, (channels, x.shape[1], kernel, kernel)).astype(np.int8), "w")
        bias = b.weight(rng.integers(-4000, 4000, channels).astype(np.int16), "b")
        out = TensorType((x.shape[0], channels, *x.shape[2:]), "i8")
        return b.conv(x, weight, bias, pads=(kernel // 2,) * 4, rshift=9, out=out)

    x = b.input("x", TensorType((1, 3, 40, 24), "i8", Quant(1 / 64)))
    with b.at("stem"):
        first = b.relu(conv(x, 24))
    with b.at("block"):
        total = b.mac_shift(conv(conv(first, 40), 24, 1), first, multipliers=(3, 5), rshift=3)
    with b.at("pool"):
        half = b.max_pool(total, kernel=(2, 2), strides=(2, 2))
    with b.at("last"):
        module = b.outputs([conv(half, 8), half], ["y0", "y1"])
    verify_module(module)
    return module


def compiled(lanes: int) -> Compiled:
    target, module = TARGET.planner(), residual()  # another remembers what it decided for its size of local memory
    target.machine.tiler.lane_bytes = lanes
    GroupLayers(2).run(module, PassContext(target=target))
    return target.compile([module], 2)


@pytest.mark.parametrize("lanes", [1 << 10, 1 << 11, 1 << 16])
def test_the_loss_of_a_wait_of_a_grouped_program_is_found(lanes: int) -> None:
    found = compiled(lanes)
    assert found.groups
    if lanes < 1 << 16:
        assert any(max(group.slices) > 1 for group in found.groups)
    (command,) = found.model.commands  # type: ignore[attr-defined]
    whole = analyze(found.model, 0)
    conflicts = conflicting(whole.accesses(), len(whole.commands))
    assert races_by_definition(whole.commands, conflicts) == races_found(whole) == set()
    needed = 0
    places = np.flatnonzero(waits(command.cmdbuf)).tolist()
    for record in places:
        broken = replace(found.model, commands=[replace(command, cmdbuf=with_wait(command.cmdbuf, record, 0))])  # type: ignore[type-var]
        analysis = analyze(broken, 0)
        expected = races_by_definition(analysis.commands, conflicts)
        assert races_found(analysis) == expected, record
        needed += bool(expected)
    assert needed >= 4
