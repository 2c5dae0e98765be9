"""Timing, trace and race check of one BM1684 stage: the plugin `bmcompiler.analysis.profile.Analysis` of this chip."""

from __future__ import annotations

from functools import cached_property

from bmcompiler.backends.bm1684.asm import mnemonics
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.timing_profile import PROFILE, TimingProfile
from bmcompiler.bmodel.bm168x_listing import Spans, stage_spans
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.analysis import Costs
from bmcompiler.runtime.simulator.bm168x.analysis import StageAnalysis, stage_of
from bmcompiler.runtime.simulator.bm168x.decoded import DecodedStage
from bmcompiler.runtime.simulator.bm1684.cost import costs
from bmcompiler.runtime.simulator.bm1684.decoded import decode
from bmcompiler.runtime.simulator.bm1684.races import accesses
from bmcompiler.runtime.simulator.races import Accesses


def analyze(model: object, program: int = 0, profile: TimingProfile = PROFILE) -> Bm1684Analysis:
    """Decode program number `program` of a model.

    Raises:
        UnsupportedError, UsageError: see `stage_of`.
        SimulatorError, FileFormatError: a program, or a list of its layers, that cannot be decoded.
    """
    net, stage = stage_of(model, CHIP.name, program)
    return Bm1684Analysis(net.name, decode(stage), stage_spans(CHIP.name.upper(), stage), profile)


class Bm1684Analysis(StageAnalysis):
    """See `StageAnalysis`."""

    def __init__(self, net: str, decoded: DecodedStage, spans: Spans, profile: TimingProfile = PROFILE) -> None:
        super().__init__(net, decoded, spans, profile)
        self._profile = profile

    @cached_property
    def costs(self) -> Costs:
        return costs(self.decoded, self._profile)

    def mnemonics(self, engine: Engine) -> list[str]:
        return mnemonics(engine, self.decoded.fields[engine])

    def accesses(self) -> Accesses:
        return accesses(self.decoded)
