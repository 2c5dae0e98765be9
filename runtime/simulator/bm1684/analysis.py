"""Timing, trace and race check of one BM1684 stage: the plugin `bmcompiler.analysis.profile.Analysis` of this chip.

Which bytes BM1684 commands read and write: the tensors the simulator itself makes of them, written down.

Every command is bound to a chip whose memories note what they are asked for; nothing is executed. Both engines meet in
local memory and in L2; global memory is GDMA's alone, which runs its commands in order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bmcompiler.backends.bm1684.asm import mnemonics
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.isa import FORMATS, ID_FIELDS
from bmcompiler.backends.bm1684.timing_profile import PROFILE
from bmcompiler.bmodel.bm168x import Bm168xStage
from bmcompiler.numeric.arrays import Floats
from bmcompiler.runtime.simulator.bm168x.analysis import ChipAnalyzer
from bmcompiler.runtime.simulator.bm168x.decoded import DecodedStage, decode_stage
from bmcompiler.runtime.simulator.bm168x.noted import OnChip, stage_accesses
from bmcompiler.runtime.simulator.bm1684.cost import costs
from bmcompiler.runtime.simulator.bm1684.gdma import Transfer, gdma_step
from bmcompiler.runtime.simulator.bm1684.memory import Memories
from bmcompiler.runtime.simulator.bm1684.operands import Operands
from bmcompiler.runtime.simulator.bm1684.plan import COMMANDS, tiu_step
from bmcompiler.runtime.simulator.notes import NamedTensors, noted
from bmcompiler.runtime.simulator.races import Accesses


class _Chip(Memories):
    """A chip that takes notes of its tables in L2."""

    def table(self, offset: int, entries: int) -> Floats:
        noted(self.globals).row("table", offset, entries, 4)
        return super().table(offset, entries)


class _NotedOperands(NamedTensors, Operands): ...


class _NotedTransfer(NamedTensors, Transfer): ...


_COMMANDS = replace(
    COMMANDS,
    tiu=lambda memories, fields, fast: tiu_step(_NotedOperands(memories, fields, fast)),
    gdma=lambda memories, fields, moved: gdma_step(_NotedTransfer(memories, fields, moved)),
)


def accesses(decoded: DecodedStage) -> Accesses:
    """See `stage_accesses`."""
    memory = OnChip(CHIP.l2_window, CHIP.l2_size, "L2")
    return stage_accesses(decoded, CHIP, memory, lambda outside, local: _Chip(outside, local=local), _COMMANDS)


def decode(stage: Bm168xStage) -> DecodedStage:
    """All static subnets of a stage; see `decode_stage`."""
    return decode_stage(stage, lambda engine, data: FORMATS[engine].decode(np.frombuffer(data, np.uint8)), ID_FIELDS)


analyze = ChipAnalyzer(
    CHIP.name, PROFILE, decode, costs, lambda decoded, engine: mnemonics(engine, decoded.fields[engine]), accesses
)
