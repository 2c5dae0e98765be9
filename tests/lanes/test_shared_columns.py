"""Reductions of rows whose columns the lanes do not divide: the last lane shares some with the one before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lane_nets import FULL, LaneChecks, Net

from bmcompiler.backends.bm1684.target import TARGET as BM1684
from bmcompiler.backends.bm1684x.target import TARGET as BM1684X
from bmcompiler.backends.lanes.kernels.sums.reduction import ReductionKernel
from bmcompiler.ir import Value
from bmcompiler.runtime.bm1684_device import Bm1684Device
from bmcompiler.runtime.bm1684x_device import Bm1684xDevice

CHIPS = {"bm1684": LaneChecks(BM1684, Bm1684Device), "bm1684x": LaneChecks(BM1684X, Bm1684xDevice)}
OPS: dict[str, Callable[[Net, Value], Value]] = {
    "softmax": lambda net, x: net.b.softmax(x, axis=1),
    "two softmaxes": lambda net, x: net.b.softmax(net.b.softmax(x, axis=1), axis=1),
    "sum": lambda net, x: net.b.reduce(x, axes=(1,), method="sum"),
    "product": lambda net, x: net.b.reduce(x, axes=(1,), method="prod"),
    "largest of them, read again": lambda net, x: net.b.relu(net.b.reduce(x, axes=(1,), method="max")),
    "position": lambda net, x: net.b.arg(x, axis=1, method="max"),
    "last position": lambda net, x: net.b.arg(x, axis=1, method="max", last=True),
    "hardmax": lambda net, x: net.b.hardmax(x, axis=1),
    "running totals": lambda net, x: net.b.cumulate(x, axis=1, method="sum"),
    "norm": lambda net, x: net.b.l2_normalize(x, axes=(1,)),
}
SHAPES = ((2, 40, 706), (1, 115, 1411))


def is_shared(chip: str, value: Value) -> bool:
    """Whether the view of what made a value is one of lanes that share columns."""
    kernel = None if value.op is None else CHIPS[chip].target.kernel_for(value.op)
    return isinstance(kernel, ReductionKernel) and kernel.view(value.op).shared > 0


@pytest.mark.parametrize("lanes", [FULL, 12000])
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("chip", CHIPS)
def test_lanes_that_share_columns(chip: str, name: str, lanes: int) -> None:
    for shape in SHAPES:
        net = Net([shape])
        made = OPS[name](net, net.b.relu(net.inputs[0]))
        with CHIPS[chip].local_memory(lanes):
            CHIPS[chip].check(net.module([made]))


@pytest.mark.parametrize("chip", CHIPS)
def test_rows_of_706_columns_are_shared(chip: str) -> None:
    net = Net([(2, 115, 706)])
    assert is_shared(chip, net.b.softmax(net.inputs[0], axis=1))


def test_bytes_of_shared_columns() -> None:
    net = Net([(3, 40, 1, 353)], 1, "i8")
    made = net.b.lut_softmax(net.inputs[0], net.f32(256), axis=1)
    assert is_shared("bm1684", made)
    CHIPS["bm1684"].check(net.module([made]))
