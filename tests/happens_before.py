"""What the race check must find, by definition: the closure of "finishes before", and sets of bytes."""

from __future__ import annotations

import numpy as np

from bmcompiler.runtime.simulator.analysis import ProgramAnalysis
from bmcompiler.runtime.simulator.races import Accesses
from bmcompiler.runtime.simulator.timing import CommandList

Pairs = set[tuple[int, int]]


def ordered(commands: CommandList) -> np.ndarray:
    """(n, n) bool: entry [i, j] says that command j is finished before command i starts."""
    before: list[int] = []  # a bit per command
    last = [0] * commands.engines
    barrier = everything = 0
    for i, (engine, wait, stops) in enumerate(
        zip(commands.engine.tolist(), commands.wait.tolist(), commands.barrier.tolist())
    ):
        found = last[engine] | barrier
        if wait >= 0:
            found |= before[wait] | 1 << wait
        if stops:
            found = everything
            barrier = found | 1 << i
        before.append(found)
        last[engine] = found | 1 << i
        everything |= 1 << i
    return np.array([[bits >> j & 1 for j in range(len(before))] for bits in before], bool)


def conflicting(accesses: Accesses, count: int) -> np.ndarray:
    """(count, count) bool: commands of which one writes a byte that the other reads or writes."""
    met = np.zeros((count, count), np.float32)
    for space in range(len(accesses.spaces)):
        rows = np.flatnonzero(accesses.space == space).tolist()
        touched = [addresses(accesses, row) for row in rows]
        known = np.unique(np.concatenate([*touched, np.zeros(0, np.int64)]))
        reads, writes = (np.zeros((count, len(known)), np.float32) for _ in range(2))
        for row, each in zip(rows, touched):
            side = writes if accesses.write[row] else reads
            side[accesses.command[row], np.searchsorted(known, each)] = 1
        met += writes @ (reads + writes).T
    return (met + met.T) > 0


def addresses(accesses: Accesses, row: int) -> np.ndarray:
    """All bytes of an access."""
    found = np.array([accesses.start[row]])
    for size, stride in zip(accesses.dims[row].tolist(), accesses.strides[row].tolist()):
        found = np.add.outer(found, np.arange(size) * stride).reshape(-1)
    return found


def races_by_definition(commands: CommandList, conflicts: np.ndarray) -> Pairs:
    """Conflicting commands (first, second) that nothing orders."""
    before = ordered(commands)
    first, second = np.nonzero(np.triu(conflicts & ~(before | before.T), 1))
    return set(zip(first.tolist(), second.tolist()))


def races_found(analysis: ProgramAnalysis) -> Pairs:
    """Pairs that the race check reports, by record."""
    record = {int(number): i for i, number in enumerate(analysis.numbers) if analysis.commands.engine[i] < 2}
    found = analysis.races(10**6)
    return {(record[race.first.index], record[race.second.index]) for race in found}
