"""Conflicts between commands that nothing orders: a proof over all schedules the waits allow. Knows no chip.

A command is finished before another starts when both run on one engine, or a chain of waits leads from one to the
other. Of every other pair, the memory they touch is compared: first by rectangular hulls, for whole windows of commands
at once, then, where hulls meet, byte by byte as sets of intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from bmcompiler.numeric.arrays import Ints, Mask
from bmcompiler.runtime.simulator.timing import CommandList

_CHUNK = 1 << 20  # pairs compared at once
_MAX_RUNS = 1 << 22  # larger boxes count as their hull


@dataclass(frozen=True)
class Accesses:
    """Reads and writes in program order; entry i of each array belongs to access i.

    An access is a strided box in one memory: bytes `start + sum(index * strides)` for all indices below `dims`
    (both (m, axes), the last axis innermost). Its hull is the rectangle of rows `row_lo .. row_hi` (a lane, or 0 in
    memories without lanes) and bytes `lo .. hi` inside a row, both half-open.

    Attributes:
        command: index of the command; space: number of the memory, an index of `spaces`.
        write: whether the bytes are written.
        spaces: how messages name bytes of each memory, with the fields {row_lo}, {row_hi}, {lo} and {hi} (inclusive).
    """

    command: Ints
    space: Ints
    write: Mask
    row_lo: Ints
    row_hi: Ints
    lo: Ints
    hi: Ints
    start: Ints
    dims: Ints
    strides: Ints
    spaces: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.command)


@dataclass(frozen=True)
class Conflict:
    """Two commands, by index, and which bytes they fight for."""

    first: int
    second: int
    where: str


def finished_before(commands: CommandList) -> Ints:
    """(n, engines): how many commands of each engine are finished for sure before each command starts."""
    counts = [0] * commands.engines
    known = [[0] * commands.engines for _ in counts]
    rows: list[list[int]] = []
    for engine, wait, barrier in zip(commands.engine.tolist(), commands.wait.tolist(), commands.barrier.tolist()):
        if barrier:
            row = counts.copy()
        else:
            row = known[engine]
            if wait >= 0:
                row = [max(a, b) for a, b in zip(row, rows[wait])]
                other = commands.engine[wait]
                row[other] = max(row[other], rows[wait][other] + 1)
            else:
                row = row.copy()
            row[engine] = counts[engine]
        rows.append(row)
        counts[engine] += 1
        known[engine] = row
        if barrier:
            known = [counts.copy() for _ in counts]
    return np.array(rows, np.int64).reshape(-1, commands.engines)


def conflicts(commands: CommandList, accesses: Accesses, limit: int) -> list[Conflict]:
    """At most `limit` conflicts between unordered commands of different engines, sorted by the earlier command."""
    known, order = finished_before(commands), _ordinals(commands)
    engine = commands.engine[accesses.command]
    found: dict[tuple[int, int], Conflict] = {}
    for one, other in combinations(np.unique(engine).tolist(), 2):
        partners = np.flatnonzero(commands.engine == other)
        for space in range(len(accesses.spaces)):
            here = accesses.space == space
            a, b = np.flatnonzero(here & (engine == one)), np.flatnonzero(here & (engine == other))
            mine, theirs = accesses.command[a], order[accesses.command[b]]
            # of the other engine: those not known to be finished before, and not known to start after
            low = np.searchsorted(theirs, known[mine, other])
            last = np.searchsorted(known[partners, one], order[mine], side="right")
            for pair in _meeting(accesses, a, b, (low, np.searchsorted(theirs, last))):
                first, second = sorted(pair, key=lambda row: int(accesses.command[row]))
                key = (int(accesses.command[first]), int(accesses.command[second]))
                if key not in found and _overlap(_runs_of(accesses, first), _runs_of(accesses, second)):
                    found[key] = Conflict(*key, _where(accesses, first, second))
                if len(found) >= limit:
                    return [found[key] for key in sorted(found)]
    return [found[key] for key in sorted(found)]


def _ordinals(commands: CommandList) -> Ints:
    """Position of every command among those of its engine."""
    order = np.zeros(len(commands), np.int64)
    for engine in range(commands.engines):
        own = np.flatnonzero(commands.engine == engine)
        order[own] = np.arange(len(own))
    return order


def _meeting(accesses: Accesses, a: Ints, b: Ints, windows: tuple[Ints, Ints]) -> Iterator[tuple[int, int]]:
    """Pairs inside the windows whose hulls meet and of which one writes."""
    low, high = windows
    counts = np.maximum(high - low, 0)
    ends = np.cumsum(counts)
    at = 0
    while at < len(a):
        stop = max(at + 1, int(np.searchsorted(ends, (ends[at - 1] if at else 0) + _CHUNK, side="right")))
        some = counts[at:stop]
        total = int(some.sum())
        if total:
            left = np.repeat(a[at:stop], some)
            within = np.arange(total) - np.repeat(np.cumsum(some) - some, some)
            right = b[np.repeat(low[at:stop], some) + within]
            hit = accesses.write[left] | accesses.write[right]
            for lower, upper in (("row_lo", "row_hi"), ("lo", "hi")):
                lows, highs = getattr(accesses, lower), getattr(accesses, upper)
                hit &= (lows[left] < highs[right]) & (lows[right] < highs[left])
            yield from zip(left[hit].tolist(), right[hit].tolist())
        at = stop


Runs = tuple[Ints, int]
"""Sorted first bytes of runs of equal length, and that length."""


def _runs_of(accesses: Accesses, row: int) -> Runs:
    return _runs(int(accesses.start[row]), tuple(accesses.dims[row].tolist()), tuple(accesses.strides[row].tolist()))


@lru_cache(maxsize=256)
def _runs(start: int, dims: tuple[int, ...], strides: tuple[int, ...]) -> Runs:
    """A box as runs of consecutive bytes, in flat addresses."""
    length = 1
    outer: list[tuple[int, int]] = []
    for size, stride in sorted(zip(dims, strides), key=lambda axis: axis[1]):
        if size == 1 or stride == 0:
            continue
        if stride <= length and not outer:  # the next piece begins inside the run, or where it ends
            length += (size - 1) * stride
        else:
            outer.append((size, stride))
    count = 1
    for size, _ in outer:
        count *= size
    if count > _MAX_RUNS:
        return np.array([start], np.int64), length + sum((size - 1) * stride for size, stride in outer)
    firsts = np.array([start], np.int64)
    for size, stride in outer:
        firsts = (firsts[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    return np.sort(firsts), length


def _overlap(a: Runs, b: Runs) -> bool:
    """Whether two sets of runs share a byte."""
    (first, length), (other, other_length) = a, b
    before = np.searchsorted(first, other + other_length) - 1  # the last run that begins before the other one ends
    return bool((first[np.maximum(before, 0)] + length > other)[before >= 0].any())


def _where(accesses: Accesses, first: int, second: int) -> str:
    verbs = ["writes" if accesses.write[row] else "reads" for row in (first, second)]
    both = np.array([first, second])
    place = accesses.spaces[int(accesses.space[first])].format(
        row_lo=accesses.row_lo[both].max(),
        row_hi=accesses.row_hi[both].min() - 1,
        lo=accesses.lo[both].max(),
        hi=accesses.hi[both].min() - 1,
    )
    return f"the first {verbs[0]} and the second {verbs[1]} {place}"
