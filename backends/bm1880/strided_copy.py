"""Strided copies of any rank as GDMA global-to-global commands.

A command moves a 4-D box whose innermost stride is 1 on both sides, h strides fit 16 bits and extents stay below 65536
(bm1880.md 5). A copy with more axes, or whose innermost axis is not contiguous, becomes several of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import prod

MAX_EXTENT = 65535
MAX_ROW_STRIDE = 65535


@dataclass(frozen=True)
class Dim:
    """One axis of a copy: elements (bytes) and the distance between neighbours on both sides."""

    size: int
    src: int
    dst: int


@dataclass(frozen=True)
class CopyCommand:
    """One command: byte offsets, shape (n, c, h, w), strides (n, c, h, w) on both sides."""

    dst: int
    src: int
    shape: tuple[int, int, int, int]
    dst_strides: tuple[int, int, int, int]
    src_strides: tuple[int, int, int, int]


_UNIT = Dim(1, 0, 0)


def copy_commands(dims: list[Dim]) -> Iterator[CopyCommand]:
    """Commands that copy the box `dims` (outermost first).

    1. axes of one element go, neighbours that continue each other merge
    2. an axis of more than 65535 elements becomes two, where its size has such factors, else pieces
    3. a contiguous innermost axis becomes w, else w is 1
    4. of the others those become n, c, h that leave the fewest commands; an axis with a stride above 65535 is never h
    5. what is left is looped over
    """
    for axes, src, dst in _short_axes(_merged(dims)):
        inner = axes.pop() if axes and axes[-1].src == axes[-1].dst == 1 else _UNIT
        n, c, h, loops = _assign(axes)
        for steps in product(*(range(dim.size) for dim in loops)):
            yield CopyCommand(
                dst + sum(i * dim.dst for i, dim in zip(steps, loops)),
                src + sum(i * dim.src for i, dim in zip(steps, loops)),
                (n.size, c.size, h.size, inner.size),
                (n.dst, c.dst, h.dst, 1),
                (n.src, c.src, h.src, 1),
            )


def _merged(dims: list[Dim]) -> list[Dim]:
    axes: list[Dim] = []
    for dim in dims:
        if dim.size == 1:
            continue
        if axes and axes[-1].src == dim.src * dim.size and axes[-1].dst == dim.dst * dim.size:
            axes[-1] = Dim(axes[-1].size * dim.size, dim.src, dim.dst)
        else:
            axes.append(dim)
    return axes


def _short_axes(axes: list[Dim]) -> Iterator[tuple[list[Dim], int, int]]:
    """The copy as boxes (axes, source offset, destination offset) without axes longer than an extent field."""
    long = next((i for i, axis in enumerate(axes) if axis.size > MAX_EXTENT), None)
    if long is None:
        yield list(axes), 0, 0
        return
    axis = axes[long]
    step = _factor(axis.size)
    if step > 1:
        halves = [Dim(axis.size // step, axis.src * step, axis.dst * step), replace(axis, size=step)]
        yield from _short_axes([*axes[:long], *halves, *axes[long + 1 :]])
        return
    whole = axis.size // MAX_EXTENT * MAX_EXTENT
    for start, size in ((0, whole), (whole, axis.size - whole)):
        piece = [replace(axis, size=size)] if size > 1 else []
        for short, src, dst in _short_axes([*axes[:long], *piece, *axes[long + 1 :]]):
            yield short, src + start * axis.src, dst + start * axis.dst


def _factor(size: int) -> int:
    """The largest divisor of `size` that fits an extent field; 1 when its partner is too large."""
    least = -(-size // MAX_EXTENT)
    partner = next((p for p in range(least, min(MAX_EXTENT, 8 * least) + 1) if size % p == 0), None)
    return 1 if partner is None else size // partner


def _assign(axes: list[Dim]) -> tuple[Dim, Dim, Dim, list[Dim]]:
    """(n, c, h, loops) that cover the most elements by one command."""
    choices = []
    for h in (_UNIT, *(dim for dim in axes if max(dim.src, dim.dst) <= MAX_ROW_STRIDE)):
        others = [dim for dim in axes if dim is not h]
        for pair in combinations((_UNIT, _UNIT, *others), 2):
            choices.append((pair[0], pair[1], h))
    best = max(choices, key=lambda choice: prod(dim.size for dim in choice))
    return *best, [dim for dim in axes if all(dim is not chosen for chosen in best)]
