"""What a planner has found out is found once for what is planned alike, and anew for what is not."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.lanes import target as lanes
from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.ir import Module, Operation, TensorType
from bmcompiler.ir.keys import FLOAT_NOTE, TENSOR_NAME
from bmcompiler.ops.builder import Builder
from bmcompiler.target import find_target, unsupported_reason


def net(seed: int = 0, stride: int = 1) -> Module:
    """Convolutions on maps that are larger than local memory."""
    b, random = Builder.new("net"), np.random.default_rng(seed)
    x = b.input("x", TensorType((1, 16, 1024, 1024)))
    for number in range(3):
        weight = b.weight(random.standard_normal((16, 16, 1, 1)).astype(np.float32), f"w{seed}{number}")
        x = b.relu(b.conv(x, weight, strides=(stride, stride)))
        stride = 1
    return b.outputs([x], ["y"])


def test_groups_of_nets_that_differ_in_weights_alone_are_chosen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    chip, choose, asked = find_target("bm1684"), lanes.choose_groups, []

    def counted(function: Any, *more: Any) -> Any:
        asked.append(function)
        return choose(function, *more)

    monkeypatch.setattr(lanes, "choose_groups", counted)
    first, other, strided = net(), net(seed=1), net(stride=2)
    for op in other.main.ops[:-1]:  # what is only said of ops changes nothing
        op.attributes |= {TENSOR_NAME: op.label, FLOAT_NOTE: "integers would take more cycles"}
    groups, again = (chip.layer_groups(module.main, 2) for module in (first, other))
    assert asked == [first.main]
    assert groups and groups == choose(first.main, chip, *chip.resident_memory(), 2)
    assert again == choose(other.main, chip, *chip.resident_memory(), 2), "ops of the function that asks"
    assert chip.layer_groups(strided.main, 2) == choose(strided.main, chip, *chip.resident_memory(), 2)
    chip.layer_groups(first.main, 1)
    assert [asked.count(each.main) for each in (first, other, strided)] == [2, 0, 1]
    find_target("bm1684").layer_groups(first.main, 2)
    assert asked.count(first.main) == 3, "another compilation knows nothing of it"


def test_rules_are_asked_again_of_an_op_that_changed() -> None:
    chip = find_target("bm1684")
    conv: Operation = next(op for op in net().main.ops if op.short_name == "conv")
    assert unsupported_reason(chip, conv) is None
    conv.attributes["strides"] = (99, 1)
    assert unsupported_reason(chip, conv) is not None
    conv.attributes["strides"] = (1, 1)
    assert unsupported_reason(chip, conv) is None


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x", "bm1880"])
def test_kernels_whose_rules_look_at_readers_say_so(chip: str) -> None:
    kernels = [form for each in find_target(chip).kernels() for form in (each, *getattr(each, "forms", ()))]
    found = {
        type(kernel).__name__: kernel.asks_readers
        for kernel in kernels
        if isinstance(kernel, DeviceKernel)
        for name in kernel._rules
        if re.search(r"\.(users|uses)\b", inspect.getsource(getattr(type(kernel), name)))
    }
    assert found == ({"QuantizeBandsKernel": True} if chip == "bm1684" else {})
