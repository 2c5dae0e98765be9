"""Timing, trace and race check of one stage; a chip says how it decodes, its cycles, mnemonics and accesses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage
from bmcompiler.bmodel.bm168x_listing import Spans, stage_spans
from bmcompiler.errors import UnsupportedError
from bmcompiler.instructions.order import Engine
from bmcompiler.numeric.arrays import Mask
from bmcompiler.runtime.simulator.analysis import Costs, ProgramAnalysis, layers_of
from bmcompiler.runtime.simulator.bm168x.decoded import HOST, NO_COMMAND, DecodedStage
from bmcompiler.runtime.simulator.races import Accesses


def stage_of(model: object, chip: str, program: int) -> tuple[Bm168xNet, Bm168xStage]:
    """Program number `program` of a model, with its net.

    Raises:
        UnsupportedError: a model of another chip than `chip`.
        UsageError: there is no such program.
    """
    if not isinstance(model, Bm168xModel) or model.target != chip:
        raise UnsupportedError(f"this timing model knows {chip} programs only")
    (found,) = model.select(program).all_stages()
    return found


@dataclass(frozen=True)
class ChipAnalyzer:
    """What a chip knows of stages: the plugin `bmcompiler.analysis.profile.Analysis` is made of it.

    Attributes:
        chip: its name in model files. profile: of the timing model, by default.
        decode: all static subnets. costs: of all records, with a profile. accesses: bytes that records read and write.
        mnemonics: of an engine's commands, in file order.
    """

    chip: str
    profile: Any
    decode: Callable[[Bm168xStage], DecodedStage]
    costs: Callable[[DecodedStage, Any], Costs]
    mnemonics: Callable[[DecodedStage, Engine], list[str]]
    accesses: Callable[[DecodedStage], Accesses]

    def __call__(self, model: object, program: int = 0, profile: Any = None) -> StageAnalysis:
        """Decode program number `program` of a model.

        Raises:
            UnsupportedError, UsageError: see `stage_of`.
            SimulatorError, FileFormatError: a program, or a list of its layers, that cannot be decoded.
        """
        net, stage = stage_of(model, self.chip, program)
        return self.of_stage(net.name, stage, profile)

    def of_stage(self, net: str, stage: Bm168xStage, profile: Any = None) -> StageAnalysis:
        """Decode a stage of the net called `net`. Raises SimulatorError, FileFormatError."""
        spans = stage_spans(self.chip.upper(), stage)
        return StageAnalysis(net, self, self.decode(stage), spans, profile or self.profile)


class StageAnalysis(ProgramAnalysis):
    """See `ProgramAnalysis`; commands have the numbers of the listing."""

    def __init__(self, net: str, chip: ChipAnalyzer, decoded: DecodedStage, spans: Spans, profile: Any) -> None:
        layers = layers_of(*((spans[engine], records) for engine, records in decoded.at.items()))
        super().__init__(net, decoded.engines, decoded.commands, layers, profile, decoded.position)
        self.chip, self.decoded, self._profile = chip, decoded, profile

    @cached_property
    def costs(self) -> Costs:
        return self.chip.costs(self.decoded, self._profile)

    @cached_property
    def names(self) -> list[str]:
        kinds = zip(self.decoded.subnet.tolist(), self.commands.engine.tolist())
        names = ["subnet" if subnet else "group" if engine == HOST else "poll" for subnet, engine in kinds]
        for engine, records in self.decoded.at.items():
            for record, name in zip(records.tolist(), self.chip.mnemonics(self.decoded, engine)):
                names[record] = name
        return names

    def accesses(self) -> Accesses:
        return self.chip.accesses(self.decoded)

    def host_calls(self) -> int:
        return int(self.decoded.subnet.sum())

    @property
    def _host(self) -> int:
        return HOST

    @property
    def _counted(self) -> Mask:
        return (self.decoded.number != NO_COMMAND) | (self.commands.engine == HOST)
