"""Inputs and outputs of element types that a model file cannot name."""

from __future__ import annotations

import numpy as np
from nets import Net

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, verify_module
from bmcompiler.passmanager import PassContext, run_pipeline


def narrowed(module: Module) -> list[str]:
    """Run the pass; returns what it tells the user."""
    notes: list[str] = []
    run_pipeline(module, "narrow-borders", PassContext(log=notes.append), verify_each=True)
    verify_module(module)
    return notes


def test_outputs_are_cast_and_indices_taken_before_they_were_widened() -> None:
    n = Net()
    x = n.input(1, 4)
    best = n.cast(n.arg(x, method="max", axis=1), dtype="i64")
    values, places = n.top_k(x, k=2, axis=1)
    indices = n.neg(n.cast(places, dtype="i64"))
    module = n.done(best, values, indices, n.compare(x, n.fill(0, 1), method="less"))
    array = np.asarray([[0.5, -1, 3, 2]], np.float32)
    before = run_module(module, {"data": array})
    notes = narrowed(module)
    assert notes == [
        "output 'out0': i64 leaves the net as i32",
        "output 'out2': i64 leaves the net as i32",
        "output 'out3': bool leaves the net as u8",
    ]
    assert [value.dtype for value in module.main.returned] == ["i32", "f32", "i32", "u8"]
    assert module.main.returned[0].op is not None and module.main.returned[0].op.short_name == "arg"
    for name, value in run_module(module, {"data": array}).items():
        np.testing.assert_array_equal(value, before[name])


def test_inputs_take_the_narrow_type_and_are_cast_back() -> None:
    n = Net()
    table, index = n.w(5, 3), n.input(1, 2, dtype="i64", name="index")
    flag = n.input(1, 1, 1, dtype="bool", name="flag")
    module = n.done(n.where(flag, n.gather(table, index, axis=0), n.fill(0, 1)), index)
    feeds = {"index": np.asarray([[4, -5]]), "flag": np.ones((1, 1, 1), bool)}
    before = run_module(module, feeds)
    assert narrowed(module) == ["input 'index': the net takes i32 for i64", "input 'flag': the net takes u8 for bool"]
    narrow = {"index": feeds["index"].astype(np.int32), "flag": feeds["flag"].astype(np.uint8)}
    for name, value in run_module(module, narrow).items():
        np.testing.assert_array_equal(value, before[name])


def test_a_net_of_usual_types_stays() -> None:
    n = Net()
    module = n.done(n.relu(n.input(1, 4)), n.cast(n.input(1, 4, name="other"), dtype="i8"))
    text = str(module)
    assert narrowed(module) == [] and str(module) == text
