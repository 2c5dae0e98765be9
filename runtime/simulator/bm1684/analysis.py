"""Timing, trace and race check of one BM1684 stage: the plugin `bmcompiler.analysis.profile.Analysis` of this chip."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import numpy as np

from bmcompiler.backends.bm1684.asm import mnemonics
from bmcompiler.backends.bm1684.isa import Engine
from bmcompiler.backends.bm1684.listing import Spans, spans_of
from bmcompiler.backends.bm1684.timing_profile import PROFILE, TimingProfile
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.runtime.simulator.analysis import Costs, Layer, ProgramAnalysis
from bmcompiler.runtime.simulator.bm1684.cost import costs
from bmcompiler.runtime.simulator.bm1684.decoded import ENGINES, Decoded, decode
from bmcompiler.runtime.simulator.bm1684.races import accesses
from bmcompiler.runtime.simulator.races import Accesses
from bmcompiler.runtime.simulator.timing import Ints


def analyze(model: object, program: int = 0, profile: TimingProfile = PROFILE) -> Bm1684Analysis:
    """Decode program number `program` of a model.

    Raises:
        UnsupportedError: a model of another chip.
        UsageError: there is no such program.
        SimulatorError, FileFormatError: a program, or a list of its layers, that cannot be decoded.
    """
    if not isinstance(model, Bm168xModel) or model.target != "bm1684":
        raise UnsupportedError("this timing model knows bm1684 programs only")
    stages = model.all_stages()
    if not 0 <= program < len(stages):
        raise UsageError(f"there is no program {program}", remedy=f"the file has 0 to {len(stages) - 1}")
    net, stage = stages[program]
    return Bm1684Analysis(net.name, decode(stage), spans_of(stage), profile)


class Bm1684Analysis(ProgramAnalysis):
    """See `ProgramAnalysis`; commands have the numbers of the listing."""

    def __init__(self, net: str, decoded: Decoded, spans: Spans, profile: TimingProfile = PROFILE) -> None:
        super().__init__(net, ENGINES, decoded.commands, _layers(decoded, spans), profile, decoded.position)
        self.decoded, self._profile = decoded, profile

    @cached_property
    def costs(self) -> Costs:
        return costs(self.decoded, self._profile)

    @cached_property
    def names(self) -> list[str]:
        names = ["subnet" if one else "group" for one in self.decoded.subnet.tolist()]
        for engine, columns in self.decoded.fields.items():
            for record, name in zip(self.decoded.at[engine].tolist(), mnemonics(engine, columns)):
                names[record] = name
        return names

    def accesses(self) -> Accesses:
        return accesses(self.decoded)

    def host_calls(self) -> int:
        return int(self.decoded.subnet.sum())


def _layers(decoded: Decoded, spans: Spans) -> list[Layer]:
    """All commands of one name make a layer: its weights may be loaded while the layer before computes."""
    parts: dict[tuple[str, str], list[Ints]] = defaultdict(list)
    for engine in Engine:
        for span in spans[engine]:
            parts[span.name, span.kind].append(decoded.at[engine][span.first : span.first + span.count])
    layers = [Layer(name, kind, np.sort(np.concatenate(records))) for (name, kind), records in parts.items()]
    return sorted(layers, key=lambda layer: int(layer.records[0]))
