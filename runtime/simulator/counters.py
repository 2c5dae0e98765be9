"""Values over time beside the timeline of a program: local memory in use, and how busy the bus is. Knows no chip."""

from __future__ import annotations

import numpy as np

from bmcompiler.numeric.arrays import Doubles, Ints
from bmcompiler.runtime.simulator.boxes import LOCAL
from bmcompiler.runtime.simulator.races import Accesses
from bmcompiler.runtime.simulator.timing import Schedule

_CELLS = 2048
"""At most how many parts a lane is divided into, of a power of two of bytes; a part is in use as a whole."""
_BINS = 1000
"""Parts of the time over which rates are averaged."""

Samples = tuple[Ints, Doubles]
"""Cycles, ascending, and the value from each of them on."""


def bytes_in_use(accesses: Accesses, times: Schedule) -> Samples:
    """Bytes of a lane that hold what is still to be read: from the start of the write to the end of the last read.

    Counted in parts of a lane, over all lanes at once, in program order: what another lane has at the same place is the
    same. What is read without being written came before the program and counts from cycle 0.
    """
    local = accesses.space == LOCAL
    if not local.any():
        return np.zeros(1, np.int64), np.zeros(1)
    hi = accesses.hi[local]
    cell = 1 << ((int(hi.max()) - 1) // _CELLS).bit_length()
    count = -(-int(hi.max()) // cell)
    born, dead = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    lives: list[tuple[Ints, Ints]] = []

    def end_lives(first: int, end: int, now: int) -> None:
        last = np.minimum(dead[first:end], now)  # a command may write what it reads
        used = last > born[first:end]
        if used.any():
            lives.append((born[first:end][used], last[used]))

    command = accesses.command[local]
    order = np.lexsort((accesses.write[local], command))  # a command reads before it writes
    columns = (accesses.lo[local] // cell, -(-hi // cell), accesses.write[local], times.start[command])
    rows = zip(*(column[order].tolist() for column in (*columns, times.end[command])))
    for first, end, write, start, stop in rows:
        if write:
            end_lives(first, end, start)
            born[first:end], dead[first:end] = start, -1
        else:
            np.maximum(dead[first:end], stop, out=dead[first:end])
    end_lives(0, count, times.cycles)
    return _levels(lives, cell)


def _levels(lives: list[tuple[Ints, Ints]], cell: int) -> Samples:
    if not lives:
        return np.zeros(1, np.int64), np.zeros(1)
    born, dead = (np.concatenate(part) for part in zip(*lives))
    steps = np.concatenate([born, dead, [0]])
    change = np.concatenate([np.full(len(born), cell), np.full(len(dead), -cell), [0]])
    at, index = np.unique(steps, return_inverse=True)
    return at, np.cumsum(np.bincount(index, change))


def rates(nbytes: Ints, times: Schedule, clock_hz: float) -> Samples:
    """Megabytes per second that cross the bus, averaged over equal parts of the time.

    `nbytes` of each command are spread over the cycles it takes.
    """
    width = max(1, -(-times.cycles // _BINS))
    count = -(-times.cycles // width) if times.cycles else 1
    edges = np.arange(count + 1, dtype=np.int64) * width
    moving = np.flatnonzero((nbytes > 0) & (times.end > times.start))
    order = moving[np.argsort(times.start[moving], kind="stable")]
    start, end, moved = times.start[order], times.end[order], nbytes[order]
    if not len(order):
        return edges[:1], np.zeros(1)
    # Bytes moved up to a cycle: all of the commands that ended, and a part of those under way.
    speed = np.concatenate([moved / (end - start), -moved / (end - start)])
    knots = np.concatenate([start, end])
    by_time = np.argsort(knots, kind="stable")
    knots, slopes = knots[by_time], np.cumsum(speed[by_time])
    total = np.concatenate([[0.0], np.cumsum(np.diff(knots) * slopes[:-1])])
    sofar = np.interp(edges, knots, total)
    # The last part may be cut short by the end of the program.
    lengths = np.minimum(edges[1:], max(times.cycles, 1)) - edges[:-1]
    per_cycle = np.maximum(0.0, np.diff(sofar)) / lengths
    return np.append(edges[:-1], times.cycles), np.append(per_cycle * (clock_hz / 1e6), 0.0)
