"""Timing, trace and race check of one stage; a chip's own class says cycles, mnemonics and accesses."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from functools import cached_property

import numpy as np

from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage
from bmcompiler.bmodel.bm168x_listing import Spans
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.analysis import Layer, Profile, ProgramAnalysis
from bmcompiler.runtime.simulator.bm168x.decoded import ENGINES, DecodedStage
from bmcompiler.runtime.simulator.timing import Ints


def stage_of(model: object, chip: str, program: int) -> tuple[Bm168xNet, Bm168xStage]:
    """Program number `program` of a model, with its net.

    Raises:
        UnsupportedError: a model of another chip than `chip`.
        UsageError: there is no such program.
    """
    if not isinstance(model, Bm168xModel) or model.target != chip:
        raise UnsupportedError(f"this timing model knows {chip} programs only")
    stages = model.all_stages()
    if not 0 <= program < len(stages):
        raise UsageError(f"there is no program {program}", remedy=f"the file has 0 to {len(stages) - 1}")
    return stages[program]


class StageAnalysis(ProgramAnalysis):
    """See `ProgramAnalysis`; commands have the numbers of the listing."""

    def __init__(self, net: str, decoded: DecodedStage, spans: Spans, profile: Profile) -> None:
        super().__init__(net, ENGINES, decoded.commands, _layers(decoded, spans), profile, decoded.position)
        self.decoded = decoded

    @abstractmethod
    def mnemonics(self, engine: Engine) -> list[str]:
        """Of an engine's commands, in file order."""

    @cached_property
    def names(self) -> list[str]:
        names = ["subnet" if one else "group" for one in self.decoded.subnet.tolist()]
        for engine, records in self.decoded.at.items():
            for record, name in zip(records.tolist(), self.mnemonics(engine)):
                names[record] = name
        return names

    def host_calls(self) -> int:
        return int(self.decoded.subnet.sum())


def _layers(decoded: DecodedStage, spans: Spans) -> list[Layer]:
    """All commands of one name make a layer: its weights may be loaded while the layer before computes."""
    parts: dict[tuple[str, str], list[Ints]] = defaultdict(list)
    for engine in Engine:
        for span in spans[engine]:
            parts[span.name, span.kind].append(decoded.at[engine][span.first : span.first + span.count])
    layers = [Layer(name, kind, np.sort(np.concatenate(records))) for (name, kind), records in parts.items()]
    return sorted(layers, key=lambda layer: int(layer.records[0]))
