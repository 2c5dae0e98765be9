"""Costs of a decoded stage out of what a chip says of the commands of each engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmcompiler.instructions.isa import Columns
from bmcompiler.instructions.order import Engine
from bmcompiler.numeric.arrays import Doubles, Ints
from bmcompiler.runtime.simulator.analysis import Costs
from bmcompiler.runtime.simulator.bm168x.decoded import DecodedStage, stage_memory
from bmcompiler.runtime.simulator.traffic import Transfers, compulsory


@dataclass(frozen=True)
class Work:
    """Cycles and multiply-accumulates of TIU commands, and the cycles these take when all multipliers work."""

    cycles: Any
    macs: Any
    ideal: Doubles


@dataclass(frozen=True)
class Moved:
    """Cycles of transfers; addresses and bytes read from and written to global memory."""

    cycles: Any
    source: Ints
    target: Ints
    read: Ints
    written: Ints


def stage_costs(
    decoded: DecodedStage,
    tiu: Callable[[Columns, int], Work],
    gdma: Callable[[Columns, int], Moved],
    hau: Callable[[Columns], Ints] | None = None,
) -> Costs:
    """Costs of all records; those of the host cost nothing here.

    Args:
        tiu, gdma: cost of the commands of an engine, of their fields and their number, which is not 0.
        hau: cycles of the commands of the sort engine, of their fields; None: the chip has none.
    """
    cycles, macs, weights, loaded, stored, source, target = np.zeros((7, len(decoded)), np.int64)
    ideal = np.zeros(len(decoded))
    at, fields = decoded.at, decoded.fields
    if len(sums := at[Engine.TIU]):
        work = tiu(fields[Engine.TIU], len(sums))
        cycles[sums], macs[sums], ideal[sums] = work.cycles, work.macs, work.ideal
    if len(moves := at[Engine.GDMA]):
        moved = gdma(fields[Engine.GDMA], len(moves))
        stage = decoded.stage
        coefficient = moved.source < (stage.io_address if stage.io_size else stage.ctx_address)
        cycles[moves], stored[moves] = moved.cycles, moved.written
        weights[moves], loaded[moves] = moved.read * coefficient, moved.read * ~coefficient
        source[moves], target[moves] = moved.source, moved.target
    if hau is not None and Engine.HAU in at:
        cycles[at[Engine.HAU]] = hau(fields[Engine.HAU])
    transfers = Transfers(source, weights + loaded, target, stored, weights > 0)
    return Costs(cycles, macs, ideal, weights, loaded, stored, *compulsory(transfers, stage_memory(decoded.stage)))
