"""Strided copies of any rank as GDMA global-to-global commands.

A command moves a 4-D box whose innermost stride is 1 on both sides, h strides fit 16 bits and extents stay below 65536
(bm1880.md 5). A copy with more axes, or whose innermost axis is not contiguous, becomes several of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

MAX_EXTENT = 65535


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


def copy_commands(dims: list[Dim]) -> Iterator[CopyCommand]:
    """Commands that copy the box `dims` (outermost first).

    1. axes of one element go, neighbours that continue each other merge
    2. a contiguous innermost axis becomes w, else w is 1
    3. the three longest other axes become n, c, h, an axis with a stride above 65535 never h
    4. longer axes and further axes are looped over
    """
    axes = _merged(dims)
    inner = axes.pop() if axes and axes[-1].src == axes[-1].dst == 1 else Dim(1, 1, 1)
    pieces = _split([*axes, inner])
    inner_pieces = pieces[-1]
    shortest_first = sorted(pieces[:-1], key=lambda parts: parts[0][0].size)
    loops, kept = shortest_first[:-3], shortest_first[-3:]
    for combination in product(*loops, *kept, inner_pieces):
        offset_src = sum(start * dim.src for dim, start in combination)
        offset_dst = sum(start * dim.dst for dim, start in combination)
        single = [dim for dim, _ in combination[len(loops) : -1]]
        looped = [dim for dim, _ in combination[: len(loops)]]
        for steps in product(*(range(dim.size) for dim in looped)):
            src = offset_src + sum(i * dim.src for i, dim in zip(steps, looped))
            dst = offset_dst + sum(i * dim.dst for i, dim in zip(steps, looped))
            yield from _commands(single, combination[-1][0], src, dst)


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


def _split(axes: list[Dim]) -> list[list[tuple[Dim, int]]]:
    """Each axis as pieces of at most 65535 elements with their start."""
    return [
        [(Dim(min(MAX_EXTENT, axis.size - lo), axis.src, axis.dst), lo) for lo in range(0, axis.size, MAX_EXTENT)]
        for axis in axes
    ]


def _commands(outer: list[Dim], inner: Dim, src: int, dst: int) -> Iterator[CopyCommand]:
    fitting = [dim for dim in outer if max(dim.src, dim.dst) <= MAX_EXTENT]
    row = min(fitting, key=lambda dim: dim.src, default=None)
    rest = [dim for dim in outer if dim is not row]
    while len(rest) > 2:  # three axes with wide strides: the first is looped over
        first, rest = rest[0], rest[1:]
        for i in range(first.size):
            yield from _commands(rest, inner, src + i * first.src, dst + i * first.dst)
        return
    unit = Dim(1, 0, 0)
    n, c = [unit] * (2 - len(rest)) + rest
    h = row or unit
    yield CopyCommand(
        dst,
        src,
        (n.size, c.size, h.size, inner.size),
        (n.dst, c.dst, h.dst, 1),
        (n.src, c.src, h.src, 1),
    )
