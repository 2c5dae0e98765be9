"""How commands of a chip of the family are decoded and bound to memories: once, for a plan that is run many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from bmcompiler.bmodel.bm168x import Bm168xStage, CommandGroup
from bmcompiler.errors import EncodingError, SimulatorError
from bmcompiler.instructions.isa import Fields
from bmcompiler.instructions.order import STREAMS, Engine, IdFields
from bmcompiler.runtime.simulator.plan import Plan, Step, bound
from bmcompiler.runtime.simulator.relocation import MovedArea, Relocation

MemoriesT = TypeVar("MemoriesT")


@dataclass(frozen=True)
class CommandSet(Generic[MemoriesT]):
    """The commands of a chip.

    Attributes:
        ids: names of the fields that order them.
        rows: fields of each command of an engine's stream; raises EncodingError.
        tiu: step of a command for (memories, fields, fast). gdma, hau: for (memories, fields, relocation); None: the
            chip has no such engine.
    """

    ids: Mapping[Engine, IdFields]
    rows: Callable[[Engine, bytes], list[Fields]]
    tiu: Callable[[MemoriesT, Fields, bool], Step]
    gdma: Callable[[MemoriesT, Fields, Relocation], Step]
    hau: Callable[[MemoriesT, Fields, Relocation], Step] | None = None

    def compile_plan(
        self,
        groups: Sequence[CommandGroup],
        memories: MemoriesT,
        relocation: Relocation | None = None,
        *,
        fast: bool = False,
    ) -> Plan:
        """Relocate and decode a static program for `memories`.

        Args:
            groups: command groups in program order; ids count from 1 in each.
            memories: those the commands work on; the global memory of the program must be mapped already.
            relocation: how compiled global addresses become real ones; by default they are real.
            fast: float sums of convolutions and matrix products in any order: close to the chip's results, not equal.

        Raises:
            SimulatorError: malformed commands, operands that leave their memory, waits that never end; names the
                command.
        """
        moved = relocation or Relocation()
        decoded = (
            ({engine: self.decode(engine, data) for engine, data in streams(group).items()}, group.polled.polls)
            for group in groups
        )
        return bound(decoded, self.ids, lambda engine, fields: self.step(memories, engine, fields, moved, fast=fast))

    def decode(self, engine: Engine, data: bytes) -> list[Fields]:
        """The commands of a stream. Raises SimulatorError for malformed ones."""
        try:
            return self.rows(engine, data)
        except EncodingError as error:
            raise SimulatorError(error.reason) from error

    def step(
        self, memories: MemoriesT, engine: Engine, fields: Fields, relocation: Relocation, *, fast: bool = False
    ) -> Step:
        """What one command does, bound to `memories`. Raises SimulatorError for forms and operands it cannot have."""
        if engine is Engine.GDMA:
            return self.gdma(memories, fields, relocation)
        if engine is Engine.HAU:
            assert self.hau is not None, "kernels of a chip without the engine"
            return self.hau(memories, fields, relocation)
        return self.tiu(memories, fields, fast)


def streams(group: CommandGroup) -> dict[Engine, bytes]:
    """The commands of each engine that has some, or could have some in a file."""
    found = dict(zip(STREAMS, group))
    return found | {Engine.HAU: group.polled.hau} if group.polled.hau else found


def stage_relocation(stage: Bm168xStage, *places: int) -> Relocation:
    """Compiled addresses to real ones: `places` of coefficients, io and neuron memory; by default where they are."""
    areas = (
        (stage.coeff_address, len(stage.coefficients), True),
        (stage.io_address, stage.io_size, False),
        (stage.ctx_address, stage.ctx_size, False),
    )
    shifts = [place - start for place, (start, _, _) in zip(places, areas)] or [0] * len(areas)
    found = zip(areas, shifts)
    return Relocation(*(MovedArea(start, shift, constant) for (start, size, constant), shift in found if size))
