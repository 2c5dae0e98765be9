"""What is brought into another layout is moved while others compute; weights that several ops read are loaded once."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.codegen.groups.steps import Residency
from bmcompiler.codegen.groups.stripes import stripes_of
from bmcompiler.codegen.groups.timeline import Clock
from bmcompiler.codegen.kernels import DeviceKernel
from bmcompiler.codegen.residency import _Planner, plan_residency
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Operation, TensorType, verify_module
from bmcompiler.ir.keys import IMAGE_ROWS
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.runtime.simulator.bm1684x.analysis import analyze
from bmcompiler.target import find_target

TARGET = find_target("bm1684x")
ROWS, TOKENS, WIDTH = 1568, 49, 96


def heads(beside: int) -> Module:
    """A product whose rows lie window by window, of rows that were made otherwise; ops between them."""
    b, random = Builder.new("net"), np.random.default_rng(0)
    x = b.input("x", TensorType((ROWS, WIDTH), "f16"))
    y = z = b.input("y", TensorType((ROWS, WIDTH), "f16"))
    made = b.relu(x)
    for _ in range(beside):
        y = b.min(b.add(y, z), z)
    product = b.matmul(made, b.weight(random.standard_normal((WIDTH, WIDTH)).astype(np.float16), "w"))
    assert product.op is not None
    product.op.attributes[IMAGE_ROWS] = TOKENS
    windows = b.permute(b.reshape(product, shape=(ROWS // TOKENS, TOKENS, 3, WIDTH // 3)), order=(0, 2, 1, 3))
    module = b.outputs([windows, y], ["heads", "y"])
    verify_module(module)
    return module


def _kernel(op: Operation) -> DeviceKernel:
    found = TARGET.kernel_for(op)
    assert isinstance(found, DeviceKernel)
    return found


def planned(module: Module) -> Residency:
    """All ops in local memory."""
    ops = [op for op in module.main.ops if op.results and op.short_name != "weight"]
    tiler, copier = TARGET.resident_memory()
    returned = set(module.main.returned).__contains__
    whole = (lambda op: _kernel(op).whole(op), lambda op, box: None)
    plan = plan_residency(
        stripes_of(ops, lambda op: None, *whole, returned, copier.grain), lambda op: True, returned, tiler, copier
    )
    assert plan is not None
    return plan


@pytest.mark.parametrize("beside", [0, 120])
def test_a_copy_begins_while_others_compute(beside: int) -> None:
    """As late as they take twice as long as it."""
    plan = planned(heads(beside))
    (product,) = (step for step in plan.steps if step.op.short_name == "matmul")
    at = plan.steps.index(product)
    (copy,) = product.before
    tiler, copier = TARGET.resident_memory()
    if not beside:
        assert not product.ahead
        return
    (first,) = product.ahead.values()
    between = [step.work.cycles for step in plan.steps[first:at] if step.work is not None]
    assert sum(between[1:]) < 2 * copier.cycles(copy.strided) <= sum(between)
    times = Clock(plan, lambda op: 0, tiler, copier)()
    assert times.starts[at] == times.ends[at - 1]  # nothing waits for it
    product.ahead.clear()
    later = Clock(plan, lambda op: 0, tiler, copier)()
    assert later.starts[at] + later.moving[at][0] >= later.ends[at - 1] + copier.cycles(copy.strided)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_results_stay(level: int) -> None:
    module, random = heads(12), np.random.default_rng(1)
    given = {name: random.standard_normal((ROWS, WIDTH)).astype(np.float16) for name in ("x", "y")}
    compiled = TARGET.compile([module], level)
    made = Session(compiled.model).run(given)
    for name, wanted in run_module(module, given, target=TARGET).items():
        np.testing.assert_array_equal(made[name].astype(np.float16).view(np.uint8), wanted.view(np.uint8))
    assert not analyze(compiled.model, 0).races()


def test_the_program_is_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    early = analyze(TARGET.compile([heads(12)], 2).model, 0).timing().cycles
    monkeypatch.setattr(_Planner, "_copied_ahead", lambda planner, index, *rest: index)
    assert early < analyze(TARGET.compile([heads(12)], 2).model, 0).timing().cycles


@pytest.mark.parametrize(("rows", "times"), [((256, 256), 1), ((256, 128), 2)])
def test_weights_that_two_ops_read_alike_are_loaded_once(rows: tuple[int, int], times: int) -> None:
    """Of other rows they may lie otherwise."""
    b, random = Builder.new("net"), np.random.default_rng(0)
    weight = b.weight(random.standard_normal((WIDTH, 2 * WIDTH), np.float32), "w")
    inputs = [b.input(f"x{number}", TensorType((count, WIDTH))) for number, count in enumerate(rows)]
    module = b.outputs([b.relu(b.matmul(x, weight)) for x in inputs], ["y0", "y1"])
    result = bmcompiler.compile_module(module, target="bm1684x", quantize="f32", check="always")
    timing = estimate(result)
    assert timing is not None
    assert timing.weights == times * 4 * WIDTH * 2 * WIDTH
