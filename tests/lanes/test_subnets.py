"""Programs that go back and forth between device and host: in which order their subnets follow each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bmcompiler import bmodel
from bmcompiler.bmodel.bm168x import CpuSubnet, TpuSubnet
from bmcompiler.interpreter import run_module
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.target import find_target


@pytest.mark.parametrize("hosts", [0, 1, 2, 3])
@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_subnets_follow_each_other_to_the_end(chip: str, hosts: int, tmp_path: Path) -> None:
    b = Builder.new("net")
    x = b.relu(b.input("x", TensorType((2, 4, 4), "f32")))
    for _ in range(hosts):
        x = b.relu(b.add(x, b.reshape(b.det(x), shape=(2, 1, 1))))
    module, target = b.outputs([x], ["y"]), find_target(chip)
    made = target.compile([module], 2).model
    ((_, stage),) = made.all_stages()
    kinds = [TpuSubnet, *[CpuSubnet, TpuSubnet] * hosts]
    assert [type(each) for each in stage.subnets] == kinds
    assert [each.id for each in stage.subnets] == list(range(len(kinds)))
    assert [each.next for each in stage.subnets] == [[number] for number in [*range(1, len(kinds)), -1]]
    bmodel.save(made, tmp_path / "net.bmodel")
    inputs = {"x": np.random.default_rng(0).standard_normal((2, 4, 4)).astype(np.float32)}
    (got,), (wanted,) = (
        each.values()
        for each in (
            Session(tmp_path / "net.bmodel").run(inputs, raw=True),
            run_module(module, inputs, target=target),
        )
    )
    assert got.tobytes() == wanted.tobytes()
