"""What the instruction builders of BM168x chips share: addresses, and who waits for whom."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from bmcompiler.backends.bm168x.builder import GroupBuilder, Ticket
from bmcompiler.backends.lanes.transfers import StridedMoves
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.hazards import Hazards, Range
from bmcompiler.codegen.memory import MemoryPlan
from bmcompiler.instructions.order import Engine
from bmcompiler.ir import Operation, Value

NEURON_VIRTUAL = 1 << 39
"""Where neuron memory seems to begin until the size of the coefficients is known."""
Add = Callable[[list[Ticket] | None], Ticket]
"""Adds a command that depends on these, None = on all so far."""
C = TypeVar("C", bound=GroupBuilder)
"""What gives the chip's commands their ids."""


class FamilyBuild(StridedMoves, Generic[C]):
    """One program under construction; `serial` makes every command wait for all before it."""

    first_address: ClassVar[int]
    """Of the coefficients, as a compiler assigns it."""

    def __init__(self, plan: MemoryPlan, coefficients: Coefficients, builder: C, serial: bool = False) -> None:
        super().__init__(plan, coefficients, not serial)
        self.serial, self._builder, self.counts = serial, builder, builder.counts
        self.fresh()

    def fresh(self) -> None:
        """Nothing that an earlier subnet did is relied on. A chip's own class forgets more."""
        self._hazards = Hazards[Ticket]()

    def expect(self, ops: Sequence[Operation]) -> None:
        """The next run of device ops that is not expected yet will have these; by default nothing follows from that."""

    def end_of_run(self) -> None:
        """A run of device ops is complete; by default nothing follows from that."""

    @staticmethod
    @abstractmethod
    def place_neurons(commands: bytes, start: int) -> bytes:
        """GDMA commands with their virtual neuron addresses moved to the real start of neuron memory."""

    def finish(self) -> list[CommandGroup]:
        """The commands since the last call, as groups; the next command begins a new subnet."""
        self.fresh()
        return self._builder.finish()

    def ordered(self, engine: Engine, reads: Sequence[Range], writes: Sequence[Range], add: Add) -> None:
        """Add a command that touches these bytes of memory that both engines reach; global memory needs none."""
        after: list[Ticket] | None = None
        if not self.serial:
            ticket = self._hazards.before(engine, reads, writes)
            after = [] if ticket is None else [ticket]
        self._hazards.note(engine, add(after), reads, writes)

    # -- addresses -----------------------------------------------------------------------------------------------------
    def neuron(self, value: Value) -> int:
        """Address of an activation, with `NEURON_VIRTUAL` as the base."""
        return NEURON_VIRTUAL + super().neuron(value)

    def coefficient(self, offset: int) -> int:
        """Address of byte `offset` of the coefficients."""
        return self.first_address + offset

    def source(self, value: Value) -> int:
        """Address to load a value from: neuron memory, or the coefficients for constants as they stand."""
        offset, constant = self.stored(value)
        return self.coefficient(offset) if constant else NEURON_VIRTUAL + offset
