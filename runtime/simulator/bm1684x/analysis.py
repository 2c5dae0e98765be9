"""Timing, trace and race check of one BM1684X stage: the plugin `bmcompiler.analysis.profile.Analysis` of this chip."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bmcompiler.backends.bm1684x.asm import mnemonic
from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.cycles import PROFILE, TimingProfile
from bmcompiler.backends.bm1684x.isa import ID_FIELDS
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.bmodel.bm168x import Bm168xStage
from bmcompiler.bmodel.bm168x_listing import Spans, stage_spans
from bmcompiler.instructions.isa import Columns
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.analysis import Costs
from bmcompiler.runtime.simulator.bm168x.analysis import StageAnalysis, stage_of
from bmcompiler.runtime.simulator.bm168x.decoded import DecodedStage, decode_stage
from bmcompiler.runtime.simulator.bm1684x.cost import costs
from bmcompiler.runtime.simulator.bm1684x.races import accesses
from bmcompiler.runtime.simulator.races import Accesses


def analyze(model: object, program: int = 0, profile: TimingProfile = PROFILE) -> Bm1684xAnalysis:
    """Decode program number `program` of a model.

    Raises:
        UnsupportedError, UsageError: see `stage_of`.
        SimulatorError, FileFormatError: a program, or a list of its layers, that cannot be decoded.
    """
    net, stage = stage_of(model, CHIP.name, program)
    return Bm1684xAnalysis(net.name, decode(stage), stage_spans(CHIP.name.upper(), stage), profile)


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


class Bm1684xAnalysis(StageAnalysis):
    """See `StageAnalysis`."""

    def __init__(self, net: str, decoded: DecodedStage, spans: Spans, profile: TimingProfile = PROFILE) -> None:
        super().__init__(net, decoded, spans, profile)
        self._profile = profile

    @cached_property
    def costs(self) -> Costs:
        return costs(self.decoded, self._profile)

    def mnemonics(self, engine: Engine) -> list[str]:
        streams = (split(engine, group[engine]) for group in self.decoded.stage.groups)
        return [mnemonic(engine, *command) for one in streams for command in zip(one.formats, one.fields())]

    def accesses(self) -> Accesses:
        return accesses(self.decoded)
