"""Parts of a concatenation are moved to their lanes as soon as they are made, where there is room."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.codegen.groups.steps import Residency
from bmcompiler.codegen.groups.timeline import Clock
from bmcompiler.codegen.kernels import DeviceKernel
from bmcompiler.codegen.residency import plan_residency, whole_stripes
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Operation, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime.bm1684_device import Bm1684Device
from bmcompiler.runtime.simulator.bm1684.analysis import analyze


def branches(size: int, early: bool = True) -> Module:
    """A short branch and a long one, joined; the short one first, or last."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 24, size, size), "f32"))

    def long() -> Value:
        y = x
        for number in range(4):
            y = b.add(b.mul(y, y), b.relu(x)) if number % 2 else b.relu(b.add(y, x))
        return y

    if early:
        short = b.abs(x)
        y = long()
    else:
        y = long()
        short = b.abs(x)
    return b.outputs([b.relu(b.concat(y, short, axis=1))], ["y"])


def _kernel(op: Operation) -> DeviceKernel:
    found = TARGET.kernel_for(op)
    assert isinstance(found, DeviceKernel)
    return found


def planned(module: Module) -> Residency:
    """All ops in local memory."""
    ops = [op for op in module.main.ops if op.results and op.short_name != "weight"]
    tiler, copier = TARGET.resident_memory()
    stripes = whole_stripes(ops, lambda op: _kernel(op).whole(op))
    plan = plan_residency(stripes, lambda op: True, lambda value: not list(value.users), tiler, copier)
    assert plan is not None
    return plan


def moved_before(module: Module) -> list[int]:
    """How many steps before the concatenation each of its portions is done that is done early."""
    return [number - at for number, step in enumerate(planned(module).steps) for at in step.early.values()]


@pytest.mark.parametrize(("size", "early", "ahead"), [(20, True, True), (20, False, False), (300, True, False)])
def test_a_part_is_moved_once_it_is_made(size: int, early: bool, ahead: bool) -> None:
    """Not what is made last, nor what would take the room of others."""
    assert (max(moved_before(branches(size, early)), default=0) > 3) == ahead


def test_nothing_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module = branches(60)
    early = analyze(TARGET.compile([module], 2).model, 0).timing().cycles
    monkeypatch.setattr("bmcompiler.codegen.residency._Planner._early_portions", lambda planner, index, *rest: index)
    assert early < analyze(TARGET.compile([module], 2).model, 0).timing().cycles


def test_a_concatenation_waits_for_what_is_done_early() -> None:
    plan, long = planned(branches(20)), 1 << 20
    (joined,) = (step for step in plan.steps if step.early)
    assert joined.work is not None
    work, (early,) = joined.work, joined.early

    def start(cycles: int) -> float:
        """Of the concatenation, if the early portion takes so long."""
        portions = tuple(
            portion._replace(cycles=cycles, transfers=cycles) if number == early else portion
            for number, portion in enumerate(work.portions)
        )
        joined.work = replace(work, cycles=sum(each.cycles for each in portions), portions=portions)
        return Clock(plan, lambda op: 0, *TARGET.resident_memory())().starts[plan.steps.index(joined)]

    assert start(2 * long) - start(long) == long


@pytest.mark.parametrize("level", [0, 1, 2])
def test_results_stay(level: int) -> None:
    module = branches(28)
    x = np.random.default_rng(1).standard_normal((1, 24, 28, 28)).astype(np.float32)
    compiled = TARGET.compile([module], level)
    (made,) = Bm1684Device().load(compiled.model)[0].run([x])
    np.testing.assert_array_equal(made, run_module(module, {"x": x}, target=TARGET)["y"])
    assert not analyze(compiled.model, 0).races()
