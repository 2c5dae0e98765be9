"""Single ops with attributes and shapes that are drawn: sizes next to those at which a chip's plans change.

An op that cannot have what is drawn for it is left out. The same name and turn give the same op.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from cycle_nets import BYTES, FLOATS, MOVES
from lane_nets import Net
from mode_layers import MODES

from bmcompiler.errors import BMError
from bmcompiler.ir import Module, Quant, TensorType, Value

IMAGES = (1, 1, 1, 2, 3, 4, 5, 8, 9)
CHANNELS = (1, 2, 3, 4, 7, 8, 12, 16, 31, 32, 33, 48, 63, 64, 65, 66, 96, 128, 130, 192)
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 24, 28, 31, 32, 33, 40, 56)
MOST = 1 << 17
"""Elements of an input."""
TRIES = 5
"""How often attributes are drawn for an op."""
Make = Callable[[Net, Value, random.Random], Any]


def _weights(net: Net, x: Value, *shape: int) -> Value:
    return net.f32(*shape) if x.type.is_float else net.integers("i8", *shape)


def _sums(x: Value, rng: random.Random) -> dict[str, Any]:
    """Attributes of whatever adds products up: in bytes the sums are shifted back, or scaled."""
    return {} if x.type.is_float else rng.choice(({"rshift": rng.randint(5, 10)}, {"mode": "high", "scale": 0.004}))


def _window(rng: random.Random) -> dict[str, Any]:
    kernel = rng.choice((1, 2, 3, 3, 4, 5, 7)), rng.choice((1, 2, 3, 3, 5, 7))
    pads = tuple(rng.randint(0, kernel[axis // 2] // 2) for axis in range(4))
    strides = rng.choice(((1, 1), (1, 1), (2, 2), (2, 1), (1, 3), (4, 4)))
    return {"kernel": kernel, "pads": pads, "strides": strides}


def _conv(net: Net, x: Value, rng: random.Random) -> Value:
    window, channels = _window(rng), x.shape[1]
    group = rng.choice([1, 1, 1, channels, *(part for part in (2, 3, 4, 8) if channels % part == 0)])
    out = channels if group == channels else group * rng.choice((1, 3, 8, 9, 16, 21, 40))
    dilations = rng.choice(((1, 1), (1, 1), (1, 1), (2, 2), (1, 3)))
    weight = _weights(net, x, out, channels // group, *window.pop("kernel"))
    bias = [net.f32(out)] if x.type.is_float and rng.random() < 0.5 else []
    return net.b.conv(x, weight, *bias, group=group, dilations=dilations, **window, **_sums(x, rng))


def _deconv(net: Net, x: Value, rng: random.Random) -> Value:
    window, channels = _window(rng), x.shape[1]
    group = rng.choice([1, 1, channels])
    out = 1 if group == channels else rng.choice((1, 5, 16, 33, 65))
    weight = _weights(net, x, channels, out, *window.pop("kernel"))
    return net.b.deconv(x, weight, group=group, **window, **_sums(x, rng))


def _matmul(net: Net, x: Value, rng: random.Random) -> Value:
    rows = x.shape[0] * rng.choice((1, x.shape[1]))
    left = net.b.reshape(x, shape=(rows, x.type.size // rows)) if rng.random() < 0.7 else x
    columns = rng.choice((1, 2, 9, 16, 63, 64, 65, 100, 257, 1000))
    return net.b.matmul(left, _weights(net, x, left.shape[-1], columns), **_sums(x, rng))


def _pool(net: Net, x: Value, rng: random.Random) -> Value:
    if rng.random() < 0.5:
        return net.b.max_pool(x, **_window(rng), ceil_mode=rng.random() < 0.3)
    sums = {} if x.type.is_float else {"multiplier": rng.randint(1, 127), "rshift": rng.randint(4, 9)}
    return net.b.avg_pool(x, **_window(rng), count_include_pad=rng.random() < 0.5, **sums)


def _permute(net: Net, x: Value, rng: random.Random) -> Value:
    return net.b.permute(x, order=tuple(rng.sample(range(4), 4)))


def _slice(net: Net, x: Value, rng: random.Random) -> Value:
    starts = tuple(rng.randrange(size) for size in x.shape)
    ends = tuple(rng.randint(start + 1, size) for start, size in zip(starts, x.shape))
    return net.b.slice(x, starts=starts, ends=ends, steps=tuple(rng.choice((1, 1, 1, 2, 3)) for _ in starts))


def _pad(net: Net, x: Value, rng: random.Random) -> Value:
    mode = rng.choice(("constant", "constant", "reflect", "edge"))
    return net.b.pad(x, pads=tuple(rng.choice((0, 0, 1, 2)) for _ in range(8)), mode=mode)


def _concat(net: Net, x: Value, rng: random.Random) -> Value:
    axis = rng.randrange(4)
    cut = [*x.shape[:axis], rng.randint(1, x.shape[axis]), *x.shape[axis + 1 :]]
    part = net.b.slice(x, starts=(0,) * 4, ends=tuple(cut), steps=(1,) * 4)
    return net.b.concat(*rng.sample([x, net.b.relu(x), part], rng.choice((2, 3))), axis=axis)


def _reduce(net: Net, x: Value, rng: random.Random) -> Value:
    axes = tuple(sorted(rng.sample(range(4), rng.choice((1, 2, 2, 3)))))
    return net.b.reduce(x, axes=axes, method=rng.choice(("sum", "mean", "max", "min")), keepdims=rng.random() < 0.5)


def _softmax(net: Net, x: Value, rng: random.Random) -> Value:
    return net.b.softmax(x, axis=rng.randrange(4))


def _operands(net: Net, x: Value, rng: random.Random) -> Value:
    """Two operands of which the second is repeated along some axes."""
    shape = tuple(rng.choice((1, size)) for size in x.shape)
    other = _weights(net, x, *shape)
    if x.type.is_float:
        return getattr(net.b, rng.choice(("add", "sub", "mul", "div", "max", "min")))(x, other)
    return getattr(net.b, rng.choice(("add_shift", "sub_shift", "mul_shift")))(x, other, rshift=rng.randint(0, 7))


def _resize(net: Net, x: Value, rng: random.Random) -> Value:
    if rng.random() < 0.4:
        return net.b.upsample(x, scale=(rng.randint(1, 4), rng.randint(1, 4)))
    sizes = tuple(max(1, size * rng.randint(1, 5) // rng.randint(1, 3)) for size in x.shape[2:])
    scales = (1.0, 1.0, *(to / size for to, size in zip(sizes, x.shape[2:])))
    return net.b.resize(x, sizes=(*x.shape[:2], *sizes), scales=scales, mode=rng.choice(("nearest", "linear")))


def _gather(net: Net, x: Value, rng: random.Random) -> Value:
    return net.b.tile(x, reps=tuple(rng.choice((1, 1, 2, 3)) for _ in range(4)))


def _norm(net: Net, x: Value, rng: random.Random) -> Value:
    return net.b.layer_norm(x, axis=rng.randint(1, 3), epsilon=1e-5)


DRAWN: dict[str, Make] = {
    "conv": _conv, "conv 2": _conv, "conv 3": _conv, "conv 4": _conv, "deconv": _deconv, "deconv 2": _deconv,
    "matmul": _matmul, "matmul 2": _matmul, "pool": _pool, "pool 2": _pool, "permute": _permute, "slice": _slice,
    "pad": _pad, "concat": _concat, "reduce": _reduce, "softmax": _softmax, "operands": _operands,
    "operands 2": _operands, "resize": _resize, "tile": _gather, "norm": _norm,
}  # fmt: skip


def _moded(net: Net, x: Value, rng: random.Random) -> Value:
    """A convolution of bytes, of a few groups, in any mode."""
    window, channels, mode = _window(rng), x.shape[1], MODES[rng.choice(list(MODES))]
    group = rng.choice([1, *(part for part in (2, 2, 3, 4, channels) if channels % part == 0)])
    wide = (320, 640) if group == 1 else (64, 65)
    out = channels if group == channels else group * rng.choice((1, 8, 33, 130, *wide))
    weight, (more, given) = net.integers("i8", out, channels // group, *window.pop("kernel")), mode(net, out)
    given |= {"group": group, **window, "activation": rng.choice(("none", "relu"))}
    shape = net.b.conv(x, weight, *more, **given).shape
    return net.b.conv(x, weight, *more, out=TensorType(shape, "i8", Quant(1 / 32)), **given)


def _indices(net: Net, *shape: int) -> Value:
    return net.b.input("places", TensorType(shape, "i32"))


def _updated(net: Net, x: Value, name: str, indices: Value, shape: tuple[int, ...], **given: Any) -> Value:
    updates = net.b.input("updates", x.type.with_shape(shape))
    return getattr(net.b, name)(x, indices, updates, **given)


def _along(net: Net, x: Value, rng: random.Random) -> Value:
    """Elements, or rows, at places along an axis."""
    axis = rng.randrange(4)
    if rng.random() < 0.5:
        return net.b.gather(x, _indices(net, rng.choice((1, 3, 64, 65, 200))), axis=axis)
    shape = (*x.shape[:axis], rng.choice((1, 3, 64, 65)), *x.shape[axis + 1 :])
    fitting = tuple(min(size, have) if at != axis else size for at, (size, have) in enumerate(zip(shape, x.shape)))
    return net.b.gather_elements(x, _indices(net, *fitting), axis=axis)


def _at_tuples(net: Net, x: Value, rng: random.Random) -> Value:
    batch = rng.choice((0, 0, 1))
    members = rng.randint(1, 4 - batch)
    return net.b.gather_nd(x, _indices(net, *x.shape[:batch], rng.choice((1, 5, 66)), members), batch_dims=batch)


def _replaced(net: Net, x: Value, rng: random.Random) -> Value:
    if rng.random() < 0.5:
        members, count = rng.randint(1, 4), rng.choice((1, 5, 66, 300))
        return _updated(net, x, "scatter_nd", _indices(net, count, members), (count, *x.shape[members:]))
    axis = rng.randrange(4)
    shape = tuple(rng.randint(1, size) for size in x.shape)
    return _updated(net, x, "scatter_elements", _indices(net, *shape), shape, axis=axis)


def _fixed(make: Callable[[Net, Value], Any]) -> Make:
    return lambda net, x, rng: make(net, x)


BY_PLACES: dict[str, Make] = {
    "along": _along, "along 2": _along, "at tuples": _at_tuples, "replaced": _replaced, "replaced 2": _replaced,
}  # fmt: skip
"""Ops that read places, which other tests need no data for."""
MODED: dict[str, Make] = {f"in a mode {number}": _moded for number in range(8)}


def drawn(kind: str, turn: int) -> Iterator[tuple[str, Module]]:
    """Ops of `kind`, "f32" or "i8", each at a shape of its own."""
    fixed = FLOATS if kind == "f32" else BYTES
    table = {f"drawn {name}": make for name, make in DRAWN.items()}
    table |= {name: _fixed(make) for name, make in (fixed | MOVES).items()}
    return _nets(table, kind, turn)


def drawn_apart(turn: int) -> Iterator[tuple[str, Module]]:
    """Ops that only programs of single ops are made of: with places as inputs, and layers of bytes in modes."""
    yield from _nets(BY_PLACES, "f32", turn)
    yield from _nets(BY_PLACES | MODED, "i8", turn)


def _nets(table: dict[str, Make], kind: str, turn: int) -> Iterator[tuple[str, Module]]:
    for name, make in table.items():
        rng = random.Random(f"{name} {kind} {turn}")
        found = next((module for module in (_net(kind, make, rng) for _ in range(TRIES)) if module is not None), None)
        if found is not None:
            yield f"{name} {kind}", found


def _net(kind: str, make: Make, rng: random.Random) -> Module | None:
    """A drawn one; None where the op cannot have it."""
    shape = [rng.choice(sizes) for sizes in (IMAGES, CHANNELS, SIZES, SIZES)]
    while prod(shape) > MOST:
        shape = [1, shape[1], *(max(1, size // 2) for size in shape[2:])]
    net = Net([tuple(shape)], 0, kind)
    try:
        made = make(net, net.inputs[0], rng)
        return net.module([made] if isinstance(made, Value) else list(made))
    except BMError:
        return None
