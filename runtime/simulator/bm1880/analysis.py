"""Timing, trace and race check of one BM1880 program: the `bmcompiler.analysis.profile.Analysis` of this chip."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bmcompiler.backends.bm1880.asm import mnemonics
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.cycles import PROFILE, TimingProfile
from bmcompiler.backends.bm1880.isa import Engine
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.bmodel.layers import LayerSpan, decode_layers
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.runtime.simulator.analysis import Costs, ProgramAnalysis, layers_of
from bmcompiler.runtime.simulator.bm1880.cost import costs
from bmcompiler.runtime.simulator.bm1880.decoded import ENGINES, Decoded, decode
from bmcompiler.runtime.simulator.bm1880.races import accesses
from bmcompiler.runtime.simulator.races import Accesses
from bmcompiler.runtime.simulator.traffic import NetMemory

_CPU = ENGINES.index("CPU")


def analyze(model: object, program: int = 0, profile: TimingProfile = PROFILE) -> Bm1880Analysis:
    """Decode program number `program` of a model.

    Raises:
        UnsupportedError: a model of another chip.
        UsageError: there is no such program.
        SimulatorError, FileFormatError: a program, or a list of its layers, that cannot be decoded.
    """
    if not isinstance(model, Bm1880Model):
        raise UnsupportedError("this timing model knows bm1880 programs only")
    if not 0 <= program < len(model.commands):
        raise UsageError(f"there is no program {program}", remedy=f"the file has 0 to {len(model.commands) - 1}")
    command = model.commands[program]
    decoded = decode(command.cmdbuf)
    spans = decode_layers(command.layers, len(decoded))
    return Bm1880Analysis(model.net_name, decoded, spans, profile, _memory(model, command))


def _memory(model: Bm1880Model, command: Command) -> NetMemory:
    inputs, outputs = (
        tuple((CHIP.global_base + info.offset, info.size) for info in side)
        for side in (command.inputs, command.outputs)
    )
    weights = len(model.weights[command.weight_index]) if command.weight_index < len(model.weights) else 0
    return NetMemory(inputs, outputs, weights)


class Bm1880Analysis(ProgramAnalysis):
    """See `ProgramAnalysis`."""

    def __init__(
        self,
        net: str,
        decoded: Decoded,
        spans: list[LayerSpan],
        profile: TimingProfile = PROFILE,
        memory: NetMemory | None = None,
    ) -> None:
        numbers = np.arange(len(decoded))
        super().__init__(net, ENGINES, decoded.commands, layers_of((spans, numbers)), profile, numbers)
        self.decoded, self._profile, self._memory = decoded, profile, memory

    @cached_property
    def costs(self) -> Costs:
        return costs(self.decoded, self._profile, self._memory)

    @cached_property
    def names(self) -> list[str]:
        names = ["cpu"] * len(self.decoded)
        parts = (
            (Engine.TPU, self.decoded.tpu, self.decoded.tpu_at),
            (Engine.GDMA, self.decoded.gdma, self.decoded.gdma_at),
        )
        for engine, columns, at in parts:
            for record, name in zip(at.tolist(), mnemonics(engine, columns)):
                names[record] = name
        return names

    def accesses(self) -> Accesses:
        return accesses(self.decoded)

    def host_calls(self) -> int:
        return int((self.commands.engine == _CPU).sum())
