"""Every op between others, which leave in local memory what it reads and read there what it makes; several images."""

from __future__ import annotations

from typing import Any

import pytest
from cycle_nets import BYTES, FLOATS
from lane_nets import LaneChecks, Net

from bmcompiler.backends.bm1684.target import TARGET as BM1684
from bmcompiler.backends.bm1684x.target import TARGET as BM1684X
from bmcompiler.errors import BMError
from bmcompiler.ir import Module, Operation, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.runtime.bm1684_device import Bm1684Device
from bmcompiler.runtime.bm1684x_device import Bm1684xDevice
from bmcompiler.target import unsupported_reason

CHIPS = {"bm1684": LaneChecks(BM1684, Bm1684Device), "bm1684x": LaneChecks(BM1684X, Bm1684xDevice)}
SHAPES = ((3, 70, 5, 7), (2, 1, 6, 9))
OF_CHANNELS = {"lut_softmax of channels": lambda net, x: net.b.lut_softmax(x, net.f32(256), axis=1)}
TABLES: dict[str, dict[str, Any]] = {"f32": FLOATS, "i8": BYTES | OF_CHANNELS}
OPS = [(name, kind) for kind, table in TABLES.items() for name in table]


def net_of(name: str, kind: str, shape: tuple[int, ...]) -> Module | None:
    """Another op, the op, another op; None where there is no such op of this shape."""
    net = Net([shape], 1, kind)

    def other(x: Value) -> Value:
        if x.type.dtype == "f32":
            return net.b.relu(x)
        return net.b.maxs(x, value=-90) if x.type.dtype == "i8" else x

    try:
        made = TABLES[kind][name](net, other(net.inputs[0]))
        return net.module([other(value) for value in ([made] if isinstance(made, Value) else made)])
    except BMError:
        return None


def runs_on(chip: str, op: Operation) -> bool:
    return (
        not isinstance(op, TensorOp) or op.name.endswith("weight") or unsupported_reason(CHIPS[chip].target, op) is None
    )


def nets(chip: str, name: str, kind: str) -> list[Module]:
    """Those that the chip runs."""
    made = [net for shape in SHAPES if (net := net_of(name, kind, shape)) is not None]
    return [net for net in made if all(runs_on(chip, op) for op in net.main.ops)]


@pytest.mark.parametrize(("name", "kind"), OPS)
@pytest.mark.parametrize("chip", CHIPS)
def test_an_op_between_others(chip: str, name: str, kind: str) -> None:
    for net in nets(chip, name, kind):
        CHIPS[chip].check(net)


@pytest.mark.parametrize("chip", CHIPS)
def test_most_ops_are_asked(chip: str) -> None:
    assert sum(bool(nets(chip, *op)) for op in OPS) > 45
