"""Timing, trace and race check of one BM1684X stage: the plugin `bmcompiler.analysis.profile.Analysis` of this chip.

Which bytes BM1684X commands read and write: the tensors the simulator itself makes of them, written down.

Every command is bound to a chip whose memories note what they are asked for; nothing is executed. Both engines meet in
local and in static memory; L2 and global memory are GDMA's alone, which runs its commands in order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.asm import mnemonic
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.isa import ID_FIELDS
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.backends.bm1684x.timing_profile import PROFILE
from bmcompiler.bmodel.bm168x import Bm168xStage
from bmcompiler.instructions.isa import Columns
from bmcompiler.instructions.order import Engine
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.simulator.bm168x.analysis import ChipAnalyzer
from bmcompiler.runtime.simulator.bm168x.decoded import DecodedStage, decode_stage
from bmcompiler.runtime.simulator.bm168x.noted import OnChip, stage_accesses
from bmcompiler.runtime.simulator.bm1684x.cost import costs
from bmcompiler.runtime.simulator.bm1684x.gdma import gdma_step
from bmcompiler.runtime.simulator.bm1684x.gdma.transfer import Transfer
from bmcompiler.runtime.simulator.bm1684x.memories import Memories
from bmcompiler.runtime.simulator.bm1684x.operands import Operands
from bmcompiler.runtime.simulator.bm1684x.plan import COMMANDS, tiu_step
from bmcompiler.runtime.simulator.bm1684x.sorting import SortCommand, sort_step
from bmcompiler.runtime.simulator.notes import NamedTensors, noted
from bmcompiler.runtime.simulator.races import Accesses


class _NotedOperands(NamedTensors, Operands):
    def static(self, name: str, count: int, dtype: np.dtype[Any]) -> Array:
        offset = self.fields[f"{name}_addr"] - CHIP.static_window
        noted(self.memories.globals).row(name, offset, count, dtype.itemsize)
        return super().static(name, count, dtype)


class _NotedTransfer(NamedTensors, Transfer): ...


class _NotedSort(NamedTensors, SortCommand): ...


_COMMANDS = replace(
    COMMANDS,
    tiu=lambda memories, fields, fast: tiu_step(_NotedOperands(memories, fields, fast)),
    gdma=lambda memories, fields, moved: gdma_step(_NotedTransfer(memories, fields, moved)),
    hau=lambda memories, fields, moved: sort_step(_NotedSort(memories, fields, moved)),
)


def accesses(decoded: DecodedStage) -> Accesses:
    """See `stage_accesses`."""
    memory = OnChip(CHIP.static_window, CHIP.static_size, "static memory")
    return stage_accesses(decoded, CHIP, memory, lambda outside, local: Memories(outside, local=local), _COMMANDS)


def decode(stage: Bm168xStage) -> DecodedStage:
    """All static subnets of a stage; see `decode_stage`."""
    return decode_stage(stage, _columns, ID_FIELDS)


def _columns(engine: Engine, data: bytes) -> Columns:
    """Fields that a command's form lacks are 0."""
    stream = split(engine, data)
    found: Columns = {}
    for numbers, _, columns in stream.columns():
        for name, values in columns.items():
            if name not in found:
                found[name] = np.zeros(len(stream), np.int64)
            found[name][numbers] = values
    return found


def _mnemonics(decoded: DecodedStage, engine: Engine) -> list[str]:
    streams = (split(engine, data) for data in decoded.streams(engine))
    return [mnemonic(engine, *command) for one in streams for command in zip(one.formats, one.fields())]


analyze = ChipAnalyzer(CHIP.name, PROFILE, decode, costs, _mnemonics, accesses)
