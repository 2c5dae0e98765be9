"""Graphs of the kinds that have been slow, drawn: each seed gives a kind, its sizes and its numbers.

What `cliff_graphs` lists are sizes somebody thought of; these are those nobody did.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np
from cliff_graphs import (
    Make,
    Shape,
    _connected,
    _layer_normed,
    _shuffled,
    _to_depth,
    _windows,
    deconvolved,
    dilated,
    every,
    gathered,
    joined,
    joined_behind,
    padded,
    permuted,
    pixels_of,
    pooled,
    resized,
    sliced,
    with_constant,
)

from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder

LARGE, SMALL = (1 << 15, 1 << 20), (1 << 6, 1 << 13)
"""Elements of a drawn input that is timed, in fewer starts of commands are most of the time, and of one computed."""
Drawn = tuple[Make, Shape]


class Random:
    """Numbers of a seed."""

    def __init__(self, seed: int, elements: tuple[int, int]) -> None:
        self.rng, self.elements = np.random.default_rng(seed), elements

    def pick(self, *choices: int) -> int:
        """One of them."""
        return choices[int(self.rng.integers(len(choices)))]

    def between(self, low: int, high: int) -> int:
        """A size, small ones as often as large ones."""
        return round(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def shape(self, *ranges: tuple[int, int]) -> Shape:
        """Sizes of the axes of a value of as many elements as are wanted."""
        while True:
            shape = tuple(self.between(*each) for each in ranges)
            if self.elements[0] <= prod(shape) <= self.elements[1]:
                return shape

    def order(self, rank: int) -> Shape:
        """Of axes, the first one as often as not in its place."""
        order = tuple(int(axis) for axis in self.rng.permutation(rank))
        return order if order != tuple(range(rank)) else order[::-1]

    def map(self) -> Shape:
        """A feature map."""
        return self.shape((1, 8), (1, 400), (5, 320), (5, 320))


def _heads(r: Random) -> Drawn:
    n, tokens, heads, width = r.shape((1, 16), (16, 600), (1, 16), (4, 96))
    order = ((0, 2, 1, 3), (0, 2, 3, 1), (0, 1, 3, 2), (2, 0, 1, 3))[r.pick(0, 1, 2, 3)]
    return permuted(order, lambda shape: (*shape[:2], heads, width)), (n, tokens, heads * width)


def _windows_of(r: Random) -> Drawn:
    size, (n, rows, columns, c) = r.pick(2, 4, 7, 8), r.shape((1, 4), (2, 10), (2, 10), (16, 400))
    return partial(_windows, size=size), (n, rows * size, columns * size, c)


def _border(r: Random) -> Drawn:
    return permuted((0, 3, 1, 2) if r.pick(0, 1) else (0, 2, 3, 1)), r.map()


def _patches(r: Random) -> Drawn:
    """Of MobileViT: rows and columns of a patch apart from the patches."""
    n, c, h, w = r.shape((1, 8), (4, 200), (4, 40), (4, 40))
    return permuted((0, 2, 1, 3)), (n * c * h, w, 2, 2)


def _shuffle(r: Random) -> Drawn:
    groups, (n, c, h, w) = r.pick(2, 3, 4, 8), r.shape((1, 8), (4, 60), (7, 60), (7, 60))
    return partial(_shuffled, groups=groups), (n, groups * c, h, w)


def _dilation(r: Random) -> Drawn:
    return dilated(r.between(8, 128), r.pick(2, 3, 4, 6, 12, 18)), r.shape((1, 2), (16, 256), (20, 66), (20, 66))


def _deconvolution(r: Random) -> Drawn:
    kernel, stride, pad = ((2, 2, 0), (3, 2, 1), (4, 2, 1), (4, 4, 0), (8, 4, 2))[r.pick(0, 1, 2, 3, 4)]
    return deconvolved(r.between(4, 128), kernel, stride, pad), r.shape((1, 2), (8, 256), (7, 60), (7, 60))


def _fully_connected(r: Random) -> Drawn:
    n, inputs = r.shape((1, 64), (512, 30000))
    return partial(_connected, outputs=r.between(10, 3000)), (n, inputs)


def _pixels(r: Random) -> Drawn:
    size, (n, c, h, w) = r.pick(2, 3, 4), r.shape((1, 4), (1, 60), (10, 300), (10, 300))
    if r.pick(0, 1):
        return partial(_to_depth, size=size, order=(0, 3, 5, 1, 2, 4)), (n, c, h * size, w * size)
    order, last = (((0, 3, 4, 1, 5, 2), False), ((0, 1, 4, 2, 5, 3), True))[r.pick(0, 1)]
    return pixels_of(order, size, last), (n, c * size**2, h, w)


def _norm(r: Random) -> Drawn:
    return _layer_normed, r.shape((1, 64), (16, 4000), (4, 200))


def _softmax(r: Random) -> Drawn:
    shape, axis = r.shape((1, 32), (2, 3000), (2, 3000)), r.pick(1, 2)
    return (lambda b, x: b.softmax(x, axis=axis)), shape


def _join(r: Random) -> Drawn:
    shape = r.map()
    return (joined_behind(r.between(1, shape[1])) if r.pick(0, 1) else joined(r.pick(2, 3))), shape


def _broadcast(r: Random) -> Drawn:
    axes = ((1,), (2,), (3,), (2, 3), (1, 3), (1, 2))[r.pick(0, 1, 2, 3, 4, 5)]
    return with_constant(("add", "mul")[r.pick(0, 1)], *axes), r.map()


def _steps(r: Random) -> Drawn:
    return every(r.pick(1, 2, 3), r.pick(2, 3, 4)), r.map()


def _pad(r: Random) -> Drawn:
    mode = ("constant", "reflect", "edge")[r.pick(0, 1, 2)]
    return padded(mode, *(r.pick(0, 1, 2, 3) for _ in range(4))), r.map()


def _one_pad(r: Random) -> Drawn:
    """Along one axis of any."""
    shape, axis, widths = r.map(), r.pick(1, 2, 3), ((0, 1), (1, 0), (2, 3))[r.pick(0, 1, 2)]
    pads = [0] * 2 * axis + [*widths] + [0] * 2 * (3 - axis)
    return (lambda b, x: b.pad(x, pads=pads, value=1.0)), shape


def _expansion(r: Random) -> Drawn:
    """Along two or three axes with others between them."""
    a, c, e = r.pick(2, 3, 7), r.pick(2, 5, 20), r.between(2, 100)
    n, d, _ = shape = r.shape((1, 4), (20, 400), (20, 400))
    return (
        lambda b, x: b.tile(b.reshape(x, shape=(n, 1, *shape[1:], 1)), reps=(1, a, 1, c if d < 60 else 1, e))
    ), shape


def _roll(r: Random) -> Drawn:
    shape, axis = r.shape((1, 8), (2, 400), (5, 320), (5, 320)), r.pick(1, 2, 3)
    by = r.between(1, shape[axis] - 1)

    def make(b: Builder, x: Value) -> Value:
        return b.concat(sliced(b, x, axis, by, shape[axis]), sliced(b, x, axis, 0, by), axis=axis)

    return make, shape


def _transpose(r: Random) -> Drawn:
    return permuted(r.order(5)), r.shape((1, 16), (2, 64), (2, 64), (2, 64), (2, 64))


def _gather(r: Random) -> Drawn:
    return gathered(r.pick(1, 2, 3)), r.map()


def _resize(r: Random) -> Drawn:
    return resized(r.pick(2, 3, 4), ("nearest", "linear")[r.pick(0, 1)], "asymmetric"), r.shape(
        (1, 2), (1, 128), (7, 80), (7, 80)
    )


def _pool(r: Random) -> Drawn:
    kind = ("avg_pool", "max_pool")[r.pick(0, 1)]
    return partial(pooled, kind=kind, count=r.between(1, 4)), r.shape((1, 8), (3, 256), (17, 80), (17, 80))


KINDS: tuple[Callable[[Random], Drawn], ...] = (
    _heads, _windows_of, _border, _patches, _shuffle, _dilation, _deconvolution, _fully_connected, _pixels, _norm,
    _softmax, _join, _broadcast, _steps, _pad, _transpose, _gather, _resize, _pool,
)  # fmt: skip


MOVES: tuple[Callable[[Random], Drawn], ...] = (_one_pad, _expansion, _roll)
"""Kinds that were found slow by single ops, and are no longer."""


def drawn(
    seed: int, elements: tuple[int, int] = LARGE, kinds: tuple[Callable[[Random], Drawn], ...] = KINDS
) -> tuple[str, Make, Shape]:
    """(name, what makes the result, shape of the input) of a seed; kinds take turns."""
    kind, random = kinds[seed % len(kinds)], Random(seed, elements)
    make, shape = kind(random)
    return f"{kind.__name__[1:]} {'x'.join(map(str, shape))}", make, shape
