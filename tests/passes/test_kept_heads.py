"""Products with a cache: whose permutes go, and with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.kept_heads import KeptHeads
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target

TARGET = find_target("bm1684x")


def attention(cached: bool, heads: int = 2, shared: int = 3, given: bool = False, dtype: str = "f16") -> Module:
    """Scores of queries that share keys; cached: of an input with a row of the net's behind it."""
    b = Builder.new("net")
    query = b.input("query", TensorType((heads, shared, 5, 32), dtype))
    new = b.relu(b.input("new", TensorType((1, 1, heads, 32), dtype)))
    keys: Value = new
    if cached:
        keys = b.concat(b.input("past", TensorType((1, 69, heads, 32), dtype)), new, axis=1)
    moved = b.reshape(b.permute(keys, order=[0, 2, 1, 3]), shape=[heads, 1, keys.shape[1], 32])
    made = b.softmax(b.matmul(query, moved, transpose_right=True), axis=3)
    return b.outputs([made, new] if given else [made], ["y", "k"][: 1 + given])


def ops(module: Module, target: str = "bm1684x") -> list[str]:
    """The ops after the pass; outputs stay, bit for bit."""
    rng, chip = np.random.default_rng(0), find_target(target)
    inputs = {
        name: rng.standard_normal(value.shape).astype(value.type.numpy)
        for name, value in zip(module.main.input_names, module.main.arguments)
    }
    before = run_module(module, inputs, target=chip)
    KeptHeads().run(module, PassContext(target=chip))
    verify_module(module)
    for name, after in run_module(module, inputs, target=chip).items():
        np.testing.assert_array_equal(before[name].view(np.uint8), after.view(np.uint8))
    return [op.short_name for op in module.main.ops[:-1]]


@pytest.mark.parametrize("cached, first", [(True, ["relu", "concat"]), (False, ["relu"])])
def test_keys_that_the_net_gives_are_read_where_they_lie(cached: bool, first: list[str]) -> None:
    assert ops(attention(cached, given=True)) == [*first, "head_matmul", "softmax"]


def test_keys_of_the_net_alone_stay_in_local_memory() -> None:
    assert "permute" in ops(attention(cached=True))
    assert "permute" in ops(attention(cached=False))


@pytest.mark.parametrize("target, dtype", [("bm1684x", "f32"), ("bm1684", "f32")])
def test_what_the_target_does_not_take_stays(target: str, dtype: str) -> None:
    assert "permute" in ops(attention(cached=True, given=True, dtype=dtype), target)
