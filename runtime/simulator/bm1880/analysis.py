"""Timing, trace and race check of one BM1880 program: the `bmcompiler.analysis.profile.Analysis` of this chip.

Which bytes commands touch is noted while they are bound to memories, as the simulator binds them. Engines meet in local
memory alone: global memory is GDMA's, and the host waits for all and all for it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bmcompiler.backends.bm1880.asm import mnemonics
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.cycles import PROFILE, TimingProfile
from bmcompiler.backends.bm1880.isa import Engine
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.bmodel.layers import LayerSpan, decode_layers
from bmcompiler.errors import UnsupportedError
from bmcompiler.instructions.isa import rows_of
from bmcompiler.runtime.simulator.analysis import Costs, ProgramAnalysis, layers_of
from bmcompiler.runtime.simulator.bm1880.cost import costs
from bmcompiler.runtime.simulator.bm1880.decoded import ENGINES, Decoded, decode
from bmcompiler.runtime.simulator.bm1880.gdma import Transfer
from bmcompiler.runtime.simulator.bm1880.memory import Memories, WideTensor
from bmcompiler.runtime.simulator.bm1880.operands import Operands
from bmcompiler.runtime.simulator.bm1880.plan import tpu_step, transfer_step
from bmcompiler.runtime.simulator.notes import LOCAL_SPACE, NamedTensors, NotedLanes, NotedOutside, Notes, noted
from bmcompiler.runtime.simulator.plain import command_errors
from bmcompiler.runtime.simulator.races import Accesses
from bmcompiler.runtime.simulator.traffic import NetMemory

_CPU = ENGINES.index("CPU")


class _NotedOperands(NamedTensors, Operands):
    def old(self) -> WideTensor:
        with noted(self.memories.globals).notes.reading():
            return super().old()


class _NotedTransfer(NamedTensors, Transfer): ...


def analyze(model: object, program: int = 0, profile: TimingProfile = PROFILE) -> Bm1880Analysis:
    """Decode program number `program` of a model.

    Raises:
        UnsupportedError: a model of another chip.
        UsageError: there is no such program.
        SimulatorError, FileFormatError: a program, or a list of its layers, that cannot be decoded.
    """
    if not isinstance(model, Bm1880Model):
        raise UnsupportedError("this timing model knows bm1880 programs only")
    (command,) = model.select(program).commands
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
        notes, decoded = Notes(), self.decoded
        outside = NotedOutside(notes)
        memories = Memories(outside, NotedLanes(notes, CHIP.lanes, CHIP.lmem_size))
        for notes.record, row in zip(decoded.tpu_at.tolist(), rows_of(decoded.tpu)):
            with command_errors(notes.record, Engine.TPU.name):
                tpu_step(_NotedOperands(memories, row))
        for notes.record, row in zip(decoded.gdma_at.tolist(), rows_of(decoded.gdma)):
            with command_errors(notes.record, Engine.GDMA.name):
                transfer_step(_NotedTransfer(memories, row, 0, (0, 0)))
        return notes.accesses(CHIP.lanes, CHIP.lmem_size, (LOCAL_SPACE,))

    def host_calls(self) -> int:
        return int((self.commands.engine == _CPU).sum())
