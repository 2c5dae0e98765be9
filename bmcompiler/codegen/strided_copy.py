"""Strided copies of any rank as global-to-global commands of a chip's GDMA, within the limits of its fields.

A command moves a 4-D box. A copy with more axes, or with strides that no field holds, becomes several of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import prod

Quad = tuple[int, int, int, int]


@dataclass(frozen=True)
class CopyLimits:
    """What the fields of one command hold at most; negative strides never.

    Attributes:
        extent: elements along any axis.
        w_source, w_target: (smallest, largest) stride along w on each side.
        h: stride along h on both sides; those of n and c have no limit that a memory could reach.
    """

    extent: int
    w_source: tuple[int, int]
    w_target: tuple[int, int]
    h: int


@dataclass(frozen=True)
class Dim:
    """One axis of a copy: elements and the distance between neighbours on both sides, in elements."""

    size: int
    src: int
    dst: int


@dataclass(frozen=True)
class CopyCommand:
    """One command: offsets, shape (n, c, h, w), strides (n, c, h, w) on both sides, all in elements."""

    dst: int
    src: int
    shape: Quad
    dst_strides: Quad
    src_strides: Quad


_ONE = Dim(1, 0, 0)
_POINT = Dim(1, 1, 1)


def copy_commands(dims: list[Dim], limits: CopyLimits) -> Iterator[CopyCommand]:
    """Commands that copy the box `dims` (outermost first); a source stride of 0 repeats.

    1. axes of one element go, neighbours that continue each other merge
    2. an axis longer than an extent field becomes two, where its size has such factors, else pieces
    3. those axes become n, c, h, w that leave the fewest commands; w is the one with the shortest steps that its
       stride fields hold, h one whose strides fit
    4. what is left, and every axis that runs backwards on one side, is looped over
    """
    for axes, src, dst in _short_axes(_merged(dims), limits.extent):
        n, c, h, w, loops = _assign(axes, limits)
        for steps in product(*(range(dim.size) for dim in loops)):
            yield CopyCommand(
                dst + sum(i * dim.dst for i, dim in zip(steps, loops)),
                src + sum(i * dim.src for i, dim in zip(steps, loops)),
                (n.size, c.size, h.size, w.size),
                (n.dst, c.dst, h.dst, w.dst),
                (n.src, c.src, h.src, w.src),
            )


def count_commands(dims: list[Dim], limits: CopyLimits) -> int:
    """How many commands `copy_commands` gives."""
    boxes = (axes for axes, _, _ in _short_axes(_merged(dims), limits.extent))
    return sum(prod(dim.size for dim in _assign(axes, limits)[4]) for axes in boxes)


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


def _short_axes(axes: list[Dim], extent: int) -> Iterator[tuple[list[Dim], int, int]]:
    """The copy as boxes (axes, source offset, destination offset) without axes longer than an extent field."""
    long = next((i for i, axis in enumerate(axes) if axis.size > extent), None)
    if long is None:
        yield list(axes), 0, 0
        return
    axis = axes[long]
    step = _factor(axis.size, extent)
    if step > 1:
        halves = [Dim(axis.size // step, axis.src * step, axis.dst * step), replace(axis, size=step)]
        yield from _short_axes([*axes[:long], *halves, *axes[long + 1 :]], extent)
        return
    whole = axis.size // extent * extent
    for start, size in ((0, whole), (whole, axis.size - whole)):
        piece = [replace(axis, size=size)] if size > 1 else []
        for short, src, dst in _short_axes([*axes[:long], *piece, *axes[long + 1 :]], extent):
            yield short, src + start * axis.src, dst + start * axis.dst


def _factor(size: int, extent: int) -> int:
    """The largest divisor of `size` that fits an extent field; 1 when its partner is too large."""
    least = -(-size // extent)
    partner = next((p for p in range(least, min(extent, 8 * least) + 1) if size % p == 0), None)
    return 1 if partner is None else size // partner


def _assign(axes: list[Dim], limits: CopyLimits) -> tuple[Dim, Dim, Dim, Dim, list[Dim]]:
    """(n, c, h, w, loops) that cover the most elements by one command."""
    forward = [dim for dim in axes if min(dim.src, dim.dst) >= 0]
    (low, high), (least, most) = limits.w_source, limits.w_target
    narrow = [dim for dim in forward if low <= dim.src <= high and least <= dim.dst <= most]
    whole, most_covered, best = prod(dim.size for dim in axes), 0, (_ONE, _ONE, _ONE, _POINT)
    for w in (*sorted(narrow, key=lambda dim: (max(dim.src, 1), dim.dst)), _POINT):
        rest = [dim for dim in forward if dim is not w]
        for h in (_ONE, *(dim for dim in rest if max(dim.src, dim.dst) <= limits.h)):
            others = [dim for dim in rest if dim is not h]
            for n, c in combinations((_ONE, _ONE, *others), 2):
                covered = n.size * c.size * h.size * w.size
                if covered > most_covered:
                    most_covered, best = covered, (n, c, h, w)
                if covered == whole:
                    return *best, []
    return *best, [dim for dim in axes if all(dim is not chosen for chosen in best)]
