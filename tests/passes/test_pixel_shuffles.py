"""Depth to space becomes one op that local memory knows; whole channels are shuffled in the weights before it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value, verify_module
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.support.pixel_shuffles import composed
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
    """What was tried reads nothing any more: a value with a reader that is nowhere has more than one."""
    module = _shuffled("blocks first", 2, (2, 2))
    assert not run_pipeline(module, "pixel-shuffles", PassContext(target=find_target("dv700")))
    ops = list(module.main.ops)
    assert all(user in ops for op in ops for value in op.results for user in value.users if isinstance(user, TensorOp))


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize(
    "batch, scale, size, channels", [(1, (2, 2), (3, 5), 6), (2, (2, 4), (6, 4), 3), (3, (3, 2), (2, 2), 2)]
)
def test_patches_become_a_picture(
    batch: int, scale: tuple[int, int], size: tuple[int, int], channels: int, chip: str
) -> None:
    """Places of each patch one behind the other, as MobileViT's attention leaves them, with two permutes."""
    b, (down, across), (h, w) = Builder.new("net"), scale, size
    x = b.input("x", TensorType((batch, down * across, h * w, channels)))
    y = b.permute(b.relu(x), order=(0, 3, 2, 1))
    y = b.permute(b.reshape(y, shape=(batch * channels * h, w, down, across)), order=(0, 2, 1, 3))
    module = b.outputs([b.reshape(y, shape=(batch, channels, h * down, w * across))], ["y"])
    inputs = {"x": np.random.default_rng(1).standard_normal(x.shape).astype(np.float32)}
    wanted = run_module(module, inputs)["y"]
    run_pipeline(module, "pixel-shuffles,dead-code", PassContext(target=find_target(chip)))
    verify_module(module)
    assert _names(module) == ["relu", "reshape", "permute", "reshape", "interleave"]
    assert np.array_equal(run_module(module, inputs)["y"], wanted)


@pytest.mark.parametrize("seed", range(30))
def test_two_permutes_with_a_reshape_between_are_one(seed: int) -> None:
    """Of pieces that are whole in all; None where one axis begins within another that it does not divide."""
    rng = np.random.default_rng(seed)
    pieces = [int(rng.choice([1, 2, 3, 4])) for _ in range(6)]

    def joined(sizes: list[int]) -> tuple[int, ...]:
        cuts = sorted({0, len(sizes), *rng.integers(1, len(sizes), 3).tolist()})
        return tuple(int(np.prod(sizes[low:high])) for low, high in pairwise(cuts))

    b, middle, shape = Builder.new("net"), joined(pieces), joined(pieces)
    back = tuple(int(axis) for axis in rng.permutation(len(middle)))
    x = b.input("x", TensorType(tuple(middle[back.index(axis)] for axis in range(len(middle)))))
    first = b.permute(x, order=tuple(back))
    second = b.permute(b.reshape(first, shape=shape), order=tuple(int(axis) for axis in rng.permutation(len(shape))))
    found = composed(first.op, second.op)
    assert found is not None
    value = np.arange(x.type.size).reshape(x.shape)
    wanted = value.transpose(first.op.order).reshape(shape).transpose(second.op.order)
    assert np.array_equal(value.reshape(found[0]).transpose(found[1]).reshape(-1), wanted.reshape(-1))


def test_axes_that_cross_are_no_pieces() -> None:
    b = Builder.new("net")
    first = b.permute(b.input("x", TensorType((3, 4))), order=(1, 0))
    second = b.permute(b.reshape(first, shape=(6, 2)), order=(1, 0))
    assert composed(first.op, second.op) is None
