"""Timing, trace and race check of one BM1684X stage: the plugin `bmcompiler.analysis.profile.Analysis` of this chip."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.asm import mnemonic
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.cycles import PROFILE
from bmcompiler.backends.bm1684x.isa import ID_FIELDS
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.bmodel.bm168x import Bm168xStage
from bmcompiler.instructions.isa import Columns
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.bm168x.analysis import ChipAnalyzer
from bmcompiler.runtime.simulator.bm168x.decoded import DecodedStage, decode_stage
from bmcompiler.runtime.simulator.bm1684x.cost import costs
from bmcompiler.runtime.simulator.bm1684x.races import accesses


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
    streams = (split(engine, group[engine]) for group in decoded.stage.groups)
    return [mnemonic(engine, *command) for one in streams for command in zip(one.formats, one.fields())]


analyze = ChipAnalyzer(CHIP.name, PROFILE, decode, costs, _mnemonics, accesses)
