"""Depth to space becomes one op that local memory knows; whole channels are shuffled in the weights before it."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target

ORDERS = {"blocks first": (0, 3, 4, 1, 5, 2), "blocks last": (0, 1, 4, 2, 5, 3)}


def _shuffled(order: str, channels: int, scale: tuple[int, int], wrong: bool = False) -> Module:
    b, (down, across), rng = Builder.new("net"), scale, np.random.default_rng(0)
    x = b.input("x", TensorType((2, 3, 4, 5)))
    total = channels * down * across

    def w(*shape: int) -> Value:
        return b.weight(rng.standard_normal(shape).astype(np.float32), "w")

    made = b.conv(x, w(total, 3, 1, 1), w(total))
    first = order == "blocks first"
    split = (2, down, across, channels, 4, 5) if first else (2, channels, down, across, 4, 5)
    given = (0, 1, 4, 3, 5, 2) if wrong else ORDERS[order]
    made = b.permute(b.reshape(made, shape=split), order=given)
    return b.outputs([b.reshape(made, shape=(2, channels, 4 * down, 5 * across))], ["y"])


def _names(module: Module) -> list[str]:
    return [op.short_name for op in module.main.ops if op.short_name not in ("weight", "func.return", "return")]


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize("scale", [(2, 2), (4, 4), (3, 1)])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("order", ORDERS)
def test_a_pixel_shuffle_is_interleaved(order: str, channels: int, scale: tuple[int, int], chip: str) -> None:
    module = _shuffled(order, channels, scale)
    inputs = {"x": np.random.default_rng(1).standard_normal((2, 3, 4, 5)).astype(np.float32)}
    wanted = run_module(module, inputs)["y"]
    run_pipeline(module, "pixel-shuffles,join-groups,dead-code", PassContext(target=find_target(chip)))
    verify_module(module)
    assert _names(module)[:2] == ["conv", "interleave"]
    assert np.array_equal(run_module(module, inputs)["y"], wanted)


def test_other_permutes_stay() -> None:
    module = _shuffled("blocks last", 2, (2, 2), wrong=True)
    assert not run_pipeline(module, "pixel-shuffles", PassContext(target=find_target("bm1684x")))


def test_a_target_without_interleaving_keeps_the_permute() -> None:
    module = _shuffled("blocks first", 2, (2, 2))
    assert not run_pipeline(module, "pixel-shuffles", PassContext(target=find_target("dv700")))
