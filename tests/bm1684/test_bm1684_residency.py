"""Values stay in local memory between ops of a BM1684 program: same bits at all levels, no race, fewer bytes moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bm1684_nets import Net, check, local_memory
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.target import Compiled

KINDS: dict[str, dict[str, Any]] = {
    "f32": {},
    "low": {"mode": "low", "scale": 2.0**-9},
    "high": {"mode": "high", "scale": 0.0011},
    "asymmetric": {"mode": "asymmetric", "scale": 0.0013, "zero_points": (0, -2, 5)},
    "border": {"mode": "asymmetric", "scale": 0.0013, "zero_points": (3, -2, 5)},
}
"""The last one pads with bytes that are not 0: these maps are copied into a frame."""
BATCHES = (1, 3, 4)


class Layers:
    """A net whose feature maps are f32, or i8 from convolutions of one mode."""

    def __init__(self, kind: str, *shapes: tuple[int, ...], seed: int = 0) -> None:
        self.mode, self.dtype = KINDS[kind], "f32" if kind == "f32" else "i8"
        self.net = Net(shapes, seed, self.dtype)
        self.b, self.inputs = self.net.b, self.net.inputs

    def constant(self, *shape: int) -> Value:
        return self.net.f32(*shape) if self.dtype == "f32" else self.net.integers("i8", *shape)

    def conv(self, x: Value, channels: int, kernel: int = 3, stride: int = 1) -> Value:
        n, c, h, w = x.shape
        out = TensorType((n, channels, -(-h // stride), -(-w // stride)), self.dtype)
        pads = (kernel // 2,) * 4
        weight = self.constant(channels, c, kernel, kernel)
        return self.b.conv(x, weight, None, strides=(stride, stride), pads=pads, out=out, **self.mode)

    def add(self, x: Value, y: Value) -> Value:
        return self.b.add(x, y, out=TensorType(x.shape, self.dtype))


def moved(compiled: Compiled) -> int:
    return sum(row.loaded + row.stored for row in compiled.rows)


def compulsory(module: Module, compiled: Compiled) -> int:
    """Bytes of weights as they are loaded, inputs and outputs."""
    borders = (*module.main.arguments, *module.main.returned)
    return sum(row.weights for row in compiled.rows) + sum(value.type.nbytes for value in borders)


def at_all_levels(module: Module, *, device: bool = True) -> Compiled:
    """Check bits and races at each level; returns the program of level 2, which hardly moves more than level 1."""
    _, one, two = (check(module, level=level, device=device) for level in (0, 1, 2))
    assert moved(two) <= 1.04 * moved(one)
    return two


def residual(x: Layers) -> list[Value]:
    (a,) = x.inputs
    b = x.conv(a, a.shape[1])
    return [x.add(x.conv(b, a.shape[1], 1), a)]


def two_blocks(x: Layers) -> list[Value]:
    (a,) = x.inputs
    b = x.conv(a, 40)
    c = x.add(x.conv(b, 40), b)
    d = x.conv(c, 70, 3, 2)
    return [x.add(x.conv(c, 70, 1, 2), x.conv(d, 70))]


def aligned_join(x: Layers) -> list[Value]:
    (a,) = x.inputs
    return [x.conv(x.b.concat(x.conv(a, 64), x.conv(a, 128, 1), axis=1), 9)]


def crooked_join(x: Layers) -> list[Value]:
    (a,) = x.inputs
    b = x.b.concat(x.conv(a, 33), x.conv(a, 70, 1), x.conv(a, 5), axis=1)
    return [x.conv(b, 9)]


def several_outputs(x: Layers) -> list[Value]:
    (a,) = x.inputs
    b = x.conv(a, 20)
    c = x.conv(b, 20)
    return [b, x.add(b, c), x.b.reshape(c, shape=(c.type.size,)), b]


def split_between(x: Layers) -> list[Value]:
    """A copy inside global memory between ops whose values stay."""
    (a,) = x.inputs
    b = x.conv(a, 20)
    c, d = x.b.split(x.conv(a, 40), axis=1, sizes=(20, 20))
    return [x.add(x.add(c, d), b)]


def views(x: Layers) -> list[Value]:
    """A value read as it is and through a view of another shape."""
    (a,) = x.inputs
    n, _, h, w = a.shape
    b = x.conv(a, 20)
    c = x.conv(x.b.reshape(b, shape=(n, 10, 2 * h, w)), 10)
    return [x.add(x.b.reshape(c, shape=b.shape), b)]


def same_twice(x: Layers) -> list[Value]:
    (a,) = x.inputs
    b = x.conv(a, 20)
    return [x.add(x.add(b, b), x.add(b, b)), x.add(a, a)]


NETS: list[Callable[[Layers], list[Value]]] = [
    residual,
    two_blocks,
    aligned_join,
    crooked_join,
    several_outputs,
    split_between,
    views,
    same_twice,
]
COMPULSORY = [residual, two_blocks, aligned_join, crooked_join, same_twice]


def made(build: Callable[[Layers], list[Value]], kind: str, *shape: int) -> Module:
    layers = Layers(kind, shape)
    return layers.net.module(build(layers))


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("build", NETS, ids=lambda build: str(build.__name__))
def test_nets_give_the_same_bits_at_all_levels(build: Callable[[Layers], list[Value]], kind: str, batch: int) -> None:
    at_all_levels(made(build, kind, batch, 12, 6, 7))


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("build", COMPULSORY, ids=lambda build: str(build.__name__))
def test_only_weights_input_and_output_cross_the_bus(
    build: Callable[[Layers], list[Value]], kind: str, batch: int
) -> None:
    module = made(build, kind, batch, 16, 8, 8)
    compiled = check(module, level=2)
    assert moved(compiled) == compulsory(module, compiled)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(NETS), st.sampled_from(list(KINDS)), st.sampled_from(BATCHES), st.integers(24, 160))
def test_small_local_memory(build: Callable[[Layers], list[Value]], kind: str, batch: int, blocks: int) -> None:
    """From a few values that fit to nearly none: evictions, ops in several tiles, values stored and loaded again."""
    module = made(build, kind, batch, 12, 9, 9)
    with local_memory(128 * blocks):
        check(module, level=2, device=False)


def test_sums_of_one_value_and_of_two_are_tiled_apart() -> None:
    """What reads one value twice has one buffer less: its tiles are too large for the other."""
    net = Net([(5, 3, 9, 11)] * 2)
    a, b = net.inputs
    with local_memory(3000):
        check(net.module([net.b.add(a, a), net.b.add(a, b)]), level=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cpu_op_in_the_middle(kind: str) -> None:
    layers = Layers(kind, (3, 12, 6, 7))
    (a,) = layers.inputs
    b = layers.conv(a, 12)
    c = layers.conv(b, 12)
    assert c.op is not None
    c.op.attributes["place.cpu"] = "asked for"
    module = layers.net.module([layers.add(layers.add(layers.conv(c, 12), b), a)])
    compiled = at_all_levels(module, device=False)
    assert [row.where for row in compiled.rows].count("cpu") == 1


def test_an_op_in_several_tiles_empties_local_memory() -> None:
    module = made(two_blocks, "f32", 1, 12, 9, 9)
    with local_memory(24 * 128):
        compiled = at_all_levels(module)
    assert any(row.tiles > 1 for row in compiled.rows)
    assert moved(compiled) > compulsory(module, compiled)


def test_factors_of_channels_stay_where_they_are_made() -> None:
    """The tail of squeeze and excitation: a factor per channel, made on one pixel and read again and again."""
    net = Net([(2, 70, 9, 8)])
    x = net.b.relu(net.inputs[0])
    factor = net.b.hard_sigmoid(net.b.avg_pool(x, kernel=(9, 8)))
    rows = {row.kind: row for row in check(net.module([net.b.relu(net.b.mul(x, factor))])).rows}
    assert (rows["hard_sigmoid"].stored, rows["mul"].loaded) == (0, 0)
