"""Steps of recurrent layers: the weights stay in local memory, and the state passes from step to step there.

Sums and functions are computed in fp32; of 16-bit floats each h is rounded before it is multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_constant, item_bytes
from bmcompiler.backends.lanes.kernels.sums.cells import BLOCKS, PLACES, RECIPES, STEPS, Run
from bmcompiler.backends.lanes.kernels.sums.step_products import MatrixProduct, Planes, Sizes, StepProduct
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.recipes import Plane, Register, Steps
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Runs, TileWork
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.recurrence import Recurrence
from bmcompiler.target import rule

_MOST = 4096
"""Steps of one tile: a program has the commands of each."""
_DEEPEST = 2048
"""Values of a state that one command multiplies."""
_SPAN = 8
"""Steps whose inputs are loaded, and whose states are stored, at once, beside other steps."""


class RecurrenceKernel(LocalKernel[Recurrence]):
    """All steps of a recurrent layer, whose weights are in local memory."""

    ops = (Recurrence,)
    grid_of_result = False
    products: ClassVar[type[StepProduct]] = MatrixProduct

    @rule("Operands and results must be of one type, {kernel.floats}")
    def known_types(self, op: Recurrence) -> bool:
        return self.one_float(*op.operands, *op.results)

    @rule("The weights must be constants")
    def constant_weights(self, op: Recurrence) -> bool:
        return is_constant(op.weight)

    @rule(f"At most {_MOST} steps may be taken at once")
    def few_steps(self, op: Recurrence) -> bool:
        return 0 < op.gates.shape[0] <= _MOST and 0 not in op.gates.shape

    @rule(f"A state must have at most {_DEEPEST} values, and fit the fields of commands")
    def small_state(self, op: Recurrence) -> bool:
        shapes = (self.sizes(op).interleaved(op.count), *(each.weights for each in self.blocks(op)))
        return op.hidden <= _DEEPEST and all(map(self.chip.fits_fields, shapes))

    def sizes(self, op: Recurrence) -> Sizes:
        """L is the largest divisor of H that lanes are there for."""
        lanes = next(lanes for lanes in range(self.chip.lanes, 0, -1) if op.hidden % lanes == 0)
        steps, images, _ = op.gates.shape
        return Sizes(steps, images, lanes, op.hidden // lanes)

    def blocks(self, op: Recurrence) -> list[StepProduct]:
        """The products of a step."""
        return [self.products(self.machine, self.sizes(op), gates, op.gates.dtype) for gates in BLOCKS[op.cell]]

    def packed(self, op: Recurrence, number: int, weight: Array) -> Array:
        """A block of the weights as it is stored."""
        block, first = self.blocks(op)[number], sum(BLOCKS[op.cell][:number])
        return block.packed(weight[first * op.hidden : (first + block.gates) * op.hidden])

    def narrowed(self, x: Array, dtype: str) -> Array:
        """fp32 as the type of the state."""
        return x

    def widened(self, x: Array, dtype: str) -> Array:
        """The type of the state as fp32."""
        return x

    def recorded(self, recipe: Callable[..., Register]) -> Steps:
        """The commands of a recipe."""
        return self.machine.recorded(recipe, dict(RECIPES)[recipe])

    def steps(self, op: Recurrence, run: Run, inputs: Callable[[int], Any], h: Any, extra: Any, shown: Any) -> Any:
        """All steps; inputs: of a step, shown: takes (step, its h, whether it is the last). Returns the last states."""
        order = op.order()
        for time in order:
            h, extra = STEPS[op.cell](run, time, inputs(time), h, extra)
            shown(time, h, time == order[-1])
        return h, extra

    # -- what it computes ----------------------------------------------------------------------------------------------
    def evaluate(self, op: Recurrence, *arrays: Array) -> Any:
        gates, weight, state, *extra = arrays
        size, dtype = self.sizes(op), op.gates.dtype
        run = _Computed(self, op, [self.packed(op, number, weight) for number in range(len(BLOCKS[op.cell]))])
        wide = self.widened(gates, dtype).reshape(size.steps, size.images, size.lanes, size.run, op.count)
        wide = wide.transpose(0, 4, 2, 1, 3)
        state, *more = (run.lanes(self.widened(each, dtype)) for each in (state, *extra))
        out = np.empty((size.steps, *size.part()[1:]), gates.dtype)

        def shown(time: int, h: Array, last: bool) -> None:
            out[time] = self.narrowed(h, dtype)
            run.feed(h)

        run.feed(state)
        h, last = self.steps(op, run, wide.__getitem__, state, more[0] if more else None, shown)
        found = [out, *(self.narrowed(each, dtype) for each in (h, last)[: len(op.results) - 1])]
        return tuple(
            np.ascontiguousarray(array.swapaxes(1, 2)).reshape(result.shape) for array, result in zip(found, op.results)
        )

    # -- its one tile --------------------------------------------------------------------------------------------------
    def grid(self, op: Recurrence) -> tuple[Axis, ...]:
        return (Axis(1),) * 4

    def work(self, op: Recurrence, box: Box) -> TileWork:
        size, item = self.sizes(op), item_bytes(op.gates)
        row = op.count * op.hidden
        counted = _Counted(self, op)
        counted.ends()
        self.steps(op, counted, counted.widen, None, None, lambda *_: counted.feed(None))
        gates = (size.images * row, size.run * op.count, row, 1)
        inputs = [self._sequence_loaded(op, size.interleaved(op.count), gates, counted.cycles)]
        state = (0, size.run, op.hidden, 1)
        inputs.append(self._loaded(op.state, size.part(), state))
        if op.extra is not None:
            inputs.append(self._loaded(op.extra, self.extra(op), state))
        inputs += [self._weights(op, number) for number in range(len(BLOCKS[op.cell]))]
        outputs = [self._sequence_stored(op)]
        outputs += [self._stored(value, size.part(), state) for value in op.results[1:]]

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            _Emitted(self, op, build, scratch).all(ins, outs, item)

        return TileWork(tuple(inputs), tuple(outputs), self._scratch(op), compute, counted.cycles)

    def extra(self, op: Recurrence) -> Shape:
        """As it is loaded: a cell, or a bias of all images."""
        size = self.sizes(op)
        return size.part() if op.cell == "lstm" else (1, size.lanes, 1, size.run)

    def _scratch(self, op: Recurrence) -> tuple[int, ...]:
        """What is multiplied, a product, a state as it is stored, inputs in fp32, places of results, and of recipes."""
        size, chip, item = self.sizes(op), self.chip, item_bytes(op.gates)
        planes = max(self.recorded(recipe).registers for recipe, _ in RECIPES)
        whole = chip.aligned_bytes(size.part(op.count))
        return (
            chip.aligned_bytes(self.blocks(op)[0].fed[0], item),
            max(chip.aligned_bytes(each.made[0]) for each in self.blocks(op)),
            chip.aligned_bytes(size.part(), item),
            chip.aligned_bytes((1, *size.interleaved(op.count)[1:])),
            *(chip.aligned_bytes(size.part(gates or op.count)) for gates in PLACES.values()),
            *(whole,) * planes,
        )

    def _weights(self, op: Recurrence, number: int) -> Buffer:
        item, shape = item_bytes(op.weight), self.blocks(op)[number].weights
        n, c, _, w = shape

        def load(build: LaneBuild, address: int) -> None:
            layout = f"block {number} of a state of {op.cell}"
            place = build.coefficients.place(op.weight, layout, partial(self.packed, op, number))
            build.load(build.coefficient(place), shape, (c * w, w, 0, 1), item, address)

        return Buffer(self.chip.aligned_bytes(shape, item), "", item * n * c * w, load, True)

    def spans(self, op: Recurrence) -> list[range]:
        """The steps that move at once, in the order in which they are computed."""
        order = op.order()
        parts = [order[first : first + _SPAN] for first in range(0, len(order), _SPAN)]
        return [range(min(part), max(part) + 1) for part in parts]

    def _sequence_loaded(self, op: Recurrence, shape: Shape, strides: Strides, cycles: int) -> Buffer:
        """The inputs of all steps: the first begins when those of its span are there."""
        item, spans = item_bytes(op.gates), self.spans(op)
        step = item * self.chip.aligned_strides(shape, item=item)[0]

        def load(build: LaneBuild, address: int) -> None:
            source = build.source(op.gates)
            for span in spans:
                first, part = span.start, (len(span), *shape[1:])
                build.load(source + item * first * strides[0], part, strides, item, address + first * step)

        runs = Runs(shape[0] * shape[2], shape[0] * shape[1] * shape[2])
        size, nbytes = self.chip.aligned_bytes(shape, item), op.gates.type.nbytes
        whole = Buffer(size, "", nbytes, load, is_constant(op.gates), runs=runs, loads=len(spans))
        tiler = self.machine.tiler
        moving = tiler.bus.load(whole) / tiler.bytes_per_cycle
        return replace(whole, late=int(min(moving, cycles) * (len(spans) - 1) / len(spans)))

    def _sequence_stored(self, op: Recurrence) -> Buffer:
        """The states of all steps; what is left when all is computed is the last span."""
        size, item, last = self.sizes(op), item_bytes(op.gates), self.spans(op)[-1]
        shape = (size.steps, *size.part()[1:])
        nbytes = op.results[0].type.nbytes
        left = nbytes * len(last) // size.steps

        def store(build: LaneBuild, address: int) -> None:
            self.store_span(build, op, last, address)

        runs = Runs(len(last) * size.images, len(last) * size.images * size.lanes)
        return Buffer(self.chip.aligned_bytes(shape, item), "nchw", nbytes, store, runs=runs, ahead=nbytes - left)

    def store_span(self, build: LaneBuild, op: Recurrence, span: range, address: int) -> None:
        """Store the states of some steps; address: of those of all."""
        size, item = self.sizes(op), item_bytes(op.gates)
        part, row = (len(span), *size.part()[1:]), size.images * op.hidden
        target, step = build.neuron(op.results[0]), item * self.chip.aligned_strides(part, item=item)[0]
        strides = (row, size.run, op.hidden, 1)
        build.store(target + item * span.start * row, part, strides, item, address + span.start * step)

    def _loaded(self, value: Value, shape: Shape, strides: Strides) -> Buffer:
        item = item_bytes(value)

        def load(build: LaneBuild, address: int) -> None:
            build.load(build.source(value), shape, strides, item, address)

        size = self.chip.aligned_bytes(shape, item)
        return Buffer(size, "", value.type.nbytes, load, is_constant(value))

    def _stored(self, value: Value, shape: Shape, strides: Strides) -> Buffer:
        item = item_bytes(value)

        def store(build: LaneBuild, address: int) -> None:
            build.store(build.neuron(value), shape, strides, item, address)

        return Buffer(self.chip.aligned_bytes(shape, item), "nchw", value.type.nbytes, store)


@dataclass
class _Base(Run):
    kernel: RecurrenceKernel
    op: Recurrence

    def __post_init__(self) -> None:
        self.size: Sizes = self.kernel.sizes(self.op)
        self.blocks: list[StepProduct] = self.kernel.blocks(self.op)


@dataclass
class _Computed(_Base):
    """Arrays (gates, lanes, images, neighbours) of fp32."""

    weights: list[Array]
    fed: Array = field(init=False)
    places: dict[str, Array] = field(default_factory=dict)

    def lanes(self, x: Array) -> Array:
        """(N, H) or (H) as it lies in lanes."""
        return x.reshape(-1, self.size.lanes, self.size.run).transpose(1, 0, 2)[None]

    def product(self, block: int) -> Array:
        return self.blocks[block].sums(self.weights[block], self.fed)

    def apply(self, recipe: Callable[..., Register], into: str, gates: int, *operands: Array, first: int = 0) -> Array:
        shape = self.size.part(gates)
        given = [np.ascontiguousarray(np.broadcast_to(each, shape)) for each in operands]
        found = self.kernel.recorded(recipe).evaluate(*given)
        self.places[into] = np.concatenate([self.places[into][:first], found]) if first else found
        return self.places[into]

    def part(self, value: Array, first: int, end: int) -> Array:
        return value[first:end]

    def feed(self, value: Array) -> None:
        self.fed = self.kernel.narrowed(value[0], self.op.gates.dtype)


@dataclass
class _Counted(_Base):
    """Cycles of the commands."""

    cycles: int = 0

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


@dataclass
class _Emitted(_Base):
    """Commands; values are `Planes`."""

    build: Any
    scratch: list[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fed, self.made, self.stored, self.wide, *rest = self.scratch
        self.places, self.registers = dict(zip(PLACES, rest)), rest[len(PLACES) :]
        self.chip = self.kernel.chip
        self.item, self.dtype = item_bytes(self.op.gates), self.op.gates.dtype

    def all(self, ins: list[int], outs: list[int], item: int) -> None:
        """All commands of the tile."""
        op, size, build = self.op, self.size, self.build
        gates, sequence = size.interleaved(op.count), (size.steps, *size.part()[1:])
        image, shown = (item * self.chip.aligned_strides(shape, item=item)[0] for shape in (gates, sequence))
        self.weights = ins[len(op.operands) - 1 :]
        ends = {span[0] if op.backwards else span[-1]: span for span in self.kernel.spans(op)[:-1]}
        build.fill(self._typed(self.fed, self.blocks[0].fed[0]), 0)
        state = self._start(ins[1], "h1", size.part())
        extra = None if op.extra is None else self._start(ins[2], "c1", self.kernel.extra(op))

        def inputs(time: int) -> Planes:
            address = ins[0] + time * image
            if item != 4:
                shape = (1, *gates[1:])
                build.cast(Words(self.wide, shape), self._typed(address, shape))
                address = self.wide
            return Planes(address, (1, 0, op.count * size.run, op.count), 1)

        def show(time: int, h: Planes, last: bool) -> None:
            place = outs[0] + time * shown
            self.narrow(place, h)
            if last:
                build.assign(self._typed(outs[1], size.part()), self._typed(place, size.part()))
            else:
                self._feed(place)
            if time in ends:
                self.kernel.store_span(build, op, ends[time], outs[0])

        self.feed(state)
        _, cell = self.kernel.steps(op, self, inputs, state, extra, show)
        if op.cell == "lstm":
            self.narrow(outs[2], cell)

    def _typed(self, address: int, shape: Shape, strides: Strides | None = None) -> Words:
        return Words(address, shape, strides, item=self.item, dtype=self.dtype)

    def _start(self, address: int, place: str, shape: Shape) -> Planes:
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
        self._feed(self.stored)

    def _feed(self, address: int) -> None:
        """What lies as it is stored, as products want it."""
        source = self._typed(address, self.size.part())
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
