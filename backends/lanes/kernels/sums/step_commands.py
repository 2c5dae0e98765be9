"""The commands of a recurrent layer: inputs of a step, its products and functions, its states as they are stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import item_bytes
from bmcompiler.backends.lanes.kernels.sums.cells import PLACES, Run
from bmcompiler.backends.lanes.kernels.sums.step_products import Planes, Sizes, StepProduct
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.recipes import Plane, Register
from bmcompiler.ops.layers.recurrence import Recurrence

if TYPE_CHECKING:
    from bmcompiler.backends.lanes.kernels.sums.recurrence import RecurrenceKernel


@dataclass
class CellRun(Run):
    """What all ways to take the steps know."""

    kernel: RecurrenceKernel
    op: Recurrence

    def __post_init__(self) -> None:
        self.size: Sizes = self.kernel.sizes(self.op)
        self.blocks: list[StepProduct] = self.kernel.blocks(self.op)


@dataclass
class Emitted(CellRun):
    """Commands; values are `Planes`."""

    build: Any
    scratch: list[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fed, self.made, self.stored, self.wide, *rest = self.scratch
        self.places, self.registers = dict(zip(PLACES, rest)), rest[len(PLACES) :]
        self.chip = self.kernel.chip
        self.item, self.dtype = item_bytes(self.op.gates), self.op.gates.dtype

    def all(self, ins: list[int], outs: list[int]) -> None:
        """All commands of the tile."""
        op, build = self.op, self.build
        self.ins, self.outs = ins, outs
        self.weights = ins[len(op.operands) - 1 :]
        self.ends = {span[0] if op.backwards else span[-1]: span for span in self.kernel.spans(op)}
        build.fill(self._typed(self.fed, self.blocks[0].fed[0]), 0)
        state = self.first(ins[1], "h1", self.size.part())
        extra = None if op.extra is None else self.first(ins[2], "c1", self.kernel.extra(op))
        self.feed(state)
        _, cell = self.kernel.steps(op, self, self.inputs, state, extra, self.show)
        if op.cell == "lstm":
            self.leave(outs[2], cell)

    def inputs(self, time: int) -> Planes:
        """Those of a step in fp32."""
        op, run, shape = self.op, self.size.run, (1, *self.size.interleaved(self.op.count)[1:])
        whole = (self.size.steps, *shape[1:])
        address = self.ins[0] + self.item * time * self.chip.aligned_strides(whole, item=self.item)[0]
        if self.item != 4:
            self.build.cast(Words(self.wide, shape), self._typed(address, shape))
            address = self.wide
        return Planes(address, (1, 0, op.count * run, op.count), 1)

    def show(self, time: int, h: Planes, last: bool) -> None:
        """Keep the h of a step, and make it what the next one multiplies."""
        sequence = (self.size.steps, *self.size.part()[1:])
        place = self.outs[0] + self.item * time * self.chip.aligned_strides(sequence, item=self.item)[0]
        self.narrow(place, h)
        if last:
            part = self.size.part()
            self.build.assign(self._typed(self.outs[1], part), self._typed(place, part))
            return
        self._feed(self._typed(place, self.size.part()))
        if time in self.ends:
            self.kernel.store_span(self.build, self.op, self.ends[time], self.outs[0])

    def leave(self, address: int, value: Planes) -> None:
        """A last state as it is stored."""
        self.narrow(address, value)

    def _typed(self, address: int, shape: Shape, strides: Strides | None = None) -> Words:
        return Words(address, shape, strides, item=self.item, dtype=self.dtype)

    def first(self, address: int, place: str, shape: Shape) -> Planes:
        """An operand in fp32, at a place that the first step does not write."""
        if self.item != 4:
            self.build.cast(Words(self.places[place], shape), self._typed(address, shape))
            address = self.places[place]
        return Planes(address, None if shape == self.size.part() else (0, 0, 0, 1), 0)

    def narrow(self, address: int, value: Planes) -> None:
        """A state as it is stored."""
        source, target = Words(value.address, self.size.part()), self._typed(address, self.size.part())
        if self.item == 4:
            self.build.assign(target, source)
        else:
            self.build.cast(target, source)

    def feed(self, value: Planes) -> None:
        self.narrow(self.stored, value)
        self._feed(self._typed(self.stored, self.size.part()))

    def _feed(self, source: Words) -> None:
        """What lies as it is stored, as products want it."""
        self.build.assign(source._replace(address=self.fed, strides=self.blocks[0].fed[1]), source)

    def product(self, block: int) -> Planes:
        form = self.blocks[block]
        form.emit(self.build, self.made, self.weights[block], self.fed)
        return Planes(self.made, form.made[1], form.made[1][0])

    def apply(
        self, recipe: Callable[..., Register], into: str, gates: int, *operands: Planes, first: int = 0
    ) -> Planes:
        shape, target = self.size.part(gates), self.places[into]
        planes, gate = [Plane(each.address, each.strides) for each in operands], self.chip.aligned_strides(shape)[0]
        self.kernel.recorded(recipe).emit(self.build, shape, planes, target + 4 * first * gate, self.registers)
        return Planes(target, None, gate)

    def part(self, value: Planes, first: int, end: int) -> Planes:
        return value._replace(address=value.address + 4 * first * value.gate)


@dataclass
class Counted(CellRun):
    """Cycles of the commands."""

    cycles: int = 0

    def all(self) -> None:
        """Of all steps, and of what lies before and behind them."""
        self.ends()
        self.kernel.steps(self.op, self, self.widen, None, None, lambda *_: self.feed(None))

    def product(self, block: int) -> None:
        self.cycles += self.blocks[block].cycles()

    def apply(self, recipe: Callable[..., Register], into: str, gates: int, *operands: None, first: int = 0) -> None:
        self.cycles += self.kernel.recorded(recipe).cycles(self.size.part(gates))

    def part(self, value: None, first: int, end: int) -> None:
        return None

    def feed(self, value: None) -> None:
        self.cycles += 2 * self.kernel.machine.cycles.pass_cycles(self.size.part())

    def ends(self) -> None:
        """What is done before the first step, and with the cell behind the last."""
        op, passes = self.op, self.kernel.machine.cycles.pass_cycles
        item = item_bytes(op.gates)
        self.feed(None)
        self.cycles += passes(self.blocks[0].fed[0], item) + (op.cell == "lstm") * passes(self.size.part())
        if item == 2:
            self.cycles += passes(self.size.part())
            self.cycles += 0 if op.extra is None else passes(self.kernel.extra(op))

    def widen(self, time: int) -> None:
        """The inputs of a step become fp32."""
        if item_bytes(self.op.gates) == 2:
            shape = (1, *self.size.interleaved(self.op.count)[1:])
            self.cycles += self.kernel.machine.cycles.pass_cycles(shape)
