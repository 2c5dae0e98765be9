"""A walk that goes back to before a whole was begun plans what one does that knew from the start to do without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.codegen import residency
from bmcompiler.codegen.groups.steps import Residency
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder


def told(found: Residency) -> list[Any]:
    """All of a plan, with live ranges by their numbers."""
    ranges = found.live_ranges
    numbers = {id(each): number for number, each in enumerate(ranges)}
    said: list[Any] = [(each.lane_bytes, each.first, each.last, each.label, each.kind) for each in ranges]
    for step in found.steps:
        bound = [(numbers[id(b.live_range)], b.moves, b.offset) for b in (*step.inputs, *step.outputs)]
        copies = [(c.strided, numbers[id(c.source)], numbers[id(c.target)]) for c in (*step.before, *step.after)]
        said.append((step.op, step.work, bound, [numbers[id(s)] for s in step.scratch], copies, step.early))
    return [*said, found.local_only]


def bottlenecks() -> Module:
    """Blocks of a residual net: sums that the next group of layers reads have no room as wholes beside all else."""
    b, random = Builder.new("net"), np.random.default_rng(0)

    def conv(x: Value, outputs: int, kernel: int, stride: int = 1) -> Value:
        weight = random.normal(0, 0.05, (outputs, x.shape[1], kernel, kernel)).astype(np.float32)
        key = b.weight(weight, f"w{random.integers(1 << 30)}")
        return b.conv(x, key, pads=(kernel // 2,) * 4, strides=(stride, stride))

    x = b.input("x", TensorType((1, 64, 56, 56)))
    for width, stride in (*[(64, 1)] * 3, (128, 2), *[(128, 1)] * 2):
        y = b.relu(conv(b.relu(conv(x, width, 1)), width, 3, stride))
        y = conv(y, 4 * width, 1)
        x = b.relu(b.add(y, x if x.shape == y.shape else conv(x, 4 * width, 1, stride)))
    return b.outputs([x], ["y"])


def test_plans_do_not_depend_on_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    made, plan, without = residency._Planner.__init__, residency._Planner.plan, residency._Planner._without
    given: dict[residency._Planner, tuple[Any, ...]] = {}
    back = set[residency._Planner]()
    compared: list[int] = []

    def init(self: residency._Planner, *arguments: Any) -> None:
        given[self] = arguments
        made(self, *arguments)

    def going_back(self: residency._Planner, value: Any) -> int:
        back.add(self)
        return without(self, value)

    def planned(self: residency._Planner) -> Residency:
        found = plan(self)
        if self in back:
            other = residency._Planner(*given[self][:-2], {*self.uses.apart}, {})
            assert told(plan(other)) == told(found) and other not in back
            compared.append(len(self.uses.apart))
        return found

    monkeypatch.setattr(residency._Planner, "__init__", init)
    monkeypatch.setattr(residency._Planner, "_without", going_back)
    monkeypatch.setattr(residency._Planner, "plan", planned)
    data = {"x": np.random.default_rng(1).uniform(-1, 1, (2, 64, 56, 56)).astype(np.float32)}
    bmcompiler.compile_module(bottlenecks(), target="bm1880", quantize="int8", data=data, max_cycles=1.0, check="never")
    assert max(compared, default=0) > 1, "no plan went back twice"
