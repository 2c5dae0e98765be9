"""How often a device run is planned to choose its groups, and that code generation follows what was planned last."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.codegen import program
from bmcompiler.codegen.groups import choose
from bmcompiler.codegen.groups.settled import SettledPlans
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.schedule.group_layers import GroupLayers
from bmcompiler.passmanager import PassContext
from bmcompiler.result import Result
from bmcompiler.target import find_target

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "models"))
from transformers import transformer

TOKENS, WIDTH, INNER, LAYERS = 384, 768, 3072, 3


def perceptrons() -> Module:
    """Layers of two products each, whose weights take more of local memory than can wait beside others."""
    b, random = Builder.new("net"), np.random.default_rng(0)
    x = b.input("x", TensorType((TOKENS, WIDTH)))
    for number in range(LAYERS):
        up, down = (
            b.weight(random.normal(0, 0.02, shape).astype(np.float32), f"{name}{number}")
            for name, shape in (("up", (WIDTH, INNER)), ("down", (INNER, WIDTH)))
        )
        with b.at(f"layer{number}"):
            x = b.add(b.matmul(b.relu(b.matmul(x, up)), down), x)
    return b.outputs([x], ["y"])


class Counted:
    """Calls of a function, which works as before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.calls = 0
        before = getattr(owner, name)

        def counted(*args: Any, **named: Any) -> Any:
            self.calls += 1
            return before(*args, **named)

        monkeypatch.setattr(owner, name, counted)


def compiled() -> Result:
    return bmcompiler.compile_module(perceptrons(), target="bm1684x", quantize="f16", opt=2, check="never")


def test_code_generation_takes_the_plan_of_the_groups_that_were_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, again = Counted(monkeypatch, choose, "settle"), Counted(monkeypatch, program, "settle")
    once = compiled().to_bytes()
    assert tried.calls
    assert not again.calls
    monkeypatch.setattr(SettledPlans, "take", lambda *_: None)
    assert compiled().to_bytes() == once
    assert again.calls == 1


@pytest.mark.slow
def test_what_cannot_be_faster_is_not_settled_and_decides_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As with all plans settled, which is most of what an encoder of many layers takes to compile."""

    def block() -> bytes:
        path = transformer("bert_block", tmp_path)
        return bmcompiler.compile(path, target="bm1684x", quantize="f16", opt=2, check="never").to_bytes()

    settled, asked = Counted(monkeypatch, choose, "settle"), Counted(monkeypatch, choose.Plans, "settles")
    once = block()
    assert 0 < settled.calls <= asked.calls // 2
    settles = choose.Plans.settles

    def fully(run: choose.Plans, groups: Sequence[Any], most: float = inf) -> float:
        before = run.settled
        cycles = settles(run, groups)
        run.settled = run.settled if cycles < most else before
        return cycles

    monkeypatch.setattr(choose.Plans, "settles", fully)
    settled.calls = asked.calls = 0
    assert block() == once
    assert settled.calls == asked.calls


def test_a_run_that_was_changed_has_no_plan() -> None:
    for change in (None, "groups", "attributes"):
        target, module = find_target("bm1684x"), compiled().module
        GroupLayers().run(module, PassContext(target))
        ops = [op for op in module.main.ops if op.name not in ("tensorop.weight", "func.return")]
        assert target.settled_plans._known.keys() == {tuple(ops)}
        if change == "groups":
            next(op for op in ops if "codegen.group" in op.attributes).attributes["codegen.slices"] = (1, 1, 7, 1)
        elif change == "attributes":
            ops[0].attributes["activation"] = "relu6"
        found = target.settled_plans.take(
            lambda module=module: choose.structure_of(module.main), ops, program.annotation
        )
        assert (found is not None) is (change is None)
        assert not target.settled_plans._known
