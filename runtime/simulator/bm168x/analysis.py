"""Timing, trace and race check of one stage; a chip's own class says cycles, mnemonics and accesses."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage
from bmcompiler.bmodel.bm168x_listing import Spans
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.simulator.analysis import Profile, ProgramAnalysis, layers_of
from bmcompiler.runtime.simulator.bm168x.decoded import ENGINES, DecodedStage


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
        layers = layers_of(*((spans[engine], decoded.at[engine]) for engine in Engine))
        super().__init__(net, ENGINES, decoded.commands, layers, profile, decoded.position)
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
