"""Elements are cast to fewer bytes before they are moved: the same bits, and no other reader gets them."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target

TOKENS, WIDTH, SIDE = 256, 64, 16


def tokens(b: Builder, name: str = "x") -> Value:
    return b.relu(b.input(name, TensorType((1, TOKENS, WIDTH))))


def as_map(b: Builder, x: Value, dtype: str = "f16") -> Value:
    turned = b.reshape(b.permute(x, order=[0, 2, 1]), shape=[1, WIDTH, SIDE, SIDE])
    return b.cast(turned, dtype=dtype)


def ops(module: Module, target: str = "bm1684x") -> list[str]:
    """What is left by the pass, which keeps every bit of the outputs."""
    rng = np.random.default_rng(0)
    shapes = zip(module.main.input_names, (value.shape for value in module.main.arguments))
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes}
    before = run_module(module, inputs)
    context = PassContext(target=find_target(target))
    run_pipeline(module, "narrow-moves", context)
    verify_module(module)
    for name, after in run_module(module, inputs).items():
        np.testing.assert_array_equal(before[name].view(np.uint8), after.view(np.uint8))
    assert not run_pipeline(module, "narrow-moves", context)
    return [op.short_name for op in module.main.ops[:-1] if op.short_name not in ("reshape", "weight")]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_a_permute_moves_what_is_cast(dtype: str) -> None:
    b = Builder.new("net")
    module = b.outputs([b.cast(b.relu(as_map(b, tokens(b), dtype)), dtype="f32")], ["y"])
    assert ops(module) == ["relu", "cast", "permute", "relu", "cast"]


def test_other_readers_share_the_cast() -> None:
    b = Builder.new("net")
    x = tokens(b)
    rows = b.cast(b.reshape(x, shape=[TOKENS, WIDTH]), dtype="f16")
    module = b.outputs([as_map(b, x), b.relu(rows), b.relu(b.cast(x, dtype="f16")), x], ["map", "rows", "same", "x"])
    assert ops(module).count("cast") == 1


def test_all_that_is_joined_is_cast() -> None:
    b = Builder.new("net")
    made = b.concat(tokens(b), tokens(b, "y"), axis=1)
    assert ops(b.outputs([b.cast(made, dtype="f16")], ["z"])) == ["relu", "cast", "relu", "cast", "concat"]


def test_moves_behind_one_another_follow() -> None:
    b = Builder.new("net")
    x = b.relu(b.input("x", TensorType((1, 4 * 8, SIDE, SIDE))))
    made = b.permute(b.interleave(x, channels=8, scale=[2, 2]), order=[0, 2, 3, 1])
    assert ops(b.outputs([b.cast(made, dtype="f16")], ["y"])) == ["relu", "cast", "interleave", "permute"]


@pytest.mark.parametrize("kind", ["read twice", "wider", "constant", "more elements", "reshape alone", "input"])
def test_others_stay(kind: str) -> None:
    b = Builder.new("net")
    x = tokens(b)
    made = [x]
    if kind == "read twice":
        turned = b.permute(x, order=[0, 2, 1])
        made += [b.cast(turned, dtype="f16"), b.abs(turned)]
    elif kind == "wider":
        made += [b.cast(b.permute(b.cast(x, dtype="f16"), order=[0, 2, 1]), dtype="f32")]
    elif kind == "constant":
        made += [b.cast(b.concat(x, b.weight(np.ones((1, 1, WIDTH), np.float32), "w"), axis=1), dtype="f16")]
    elif kind == "more elements":
        phases = b.relu(b.input("p", TensorType((1, 4 * 8, SIDE, SIDE))))
        made += [b.cast(b.interleave(phases, channels=7, scale=[2, 2]), dtype="f16"), x]
    elif kind == "input":  # lies in global memory, where the permute is done, too
        blocks = b.reshape(b.input("i", TensorType((1, 3, 40, 64))), shape=[1, 3, 20, 2, 32, 2])
        made += [b.cast(b.permute(blocks, order=[0, 3, 5, 1, 2, 4]), dtype="f16")]
    else:
        made += [b.cast(b.reshape(x, shape=[TOKENS, WIDTH]), dtype="f16")]
    module = b.outputs(made, [f"y{number}" for number in range(len(made))])
    assert not run_pipeline(module, "narrow-moves", PassContext(target=find_target("bm1684x")))


def test_a_chip_without_the_type_keeps_them() -> None:
    b = Builder.new("net")
    module = b.outputs([as_map(b, tokens(b))], ["y"])
    assert not run_pipeline(module, "narrow-moves", PassContext(target=find_target("bm1684")))
