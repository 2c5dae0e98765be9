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
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_constant, item_bytes
from bmcompiler.backends.lanes.kernels.sums.cells import BLOCKS, PLACES, RECIPES, STEPS, Run
from bmcompiler.backends.lanes.kernels.sums.step_commands import CellRun, Counted, Emitted
from bmcompiler.backends.lanes.kernels.sums.step_products import MatrixProduct, Sizes, StepProduct
from bmcompiler.backends.lanes.recipes import Register, Steps
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
    by_gate = False
    order_of_gates = "lie next to each other, those of a value"
    products: ClassVar[type[StepProduct]] = MatrixProduct
    counted: ClassVar[type[Counted]] = Counted
    emitted: ClassVar[type[Emitted]] = Emitted

    @rule("Operands and results must be of one type, {kernel.floats}")
    def known_types(self, op: Recurrence) -> bool:
        return self.one_float(*op.operands, *op.results)

    @rule("The weights must be constants")
    def constant_weights(self, op: Recurrence) -> bool:
        return is_constant(op.weight)

    @rule("Gates must {kernel.order_of_gates}")
    def known_order(self, op: Recurrence) -> bool:
        return self.by_gate == op.by_gate

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
        wide = self.gates_in_lanes(op, self.widened(gates, dtype))
        state, *more = (self.in_lanes(op, self.widened(each, dtype)) for each in (state, *extra))
        out = np.empty((size.steps, *size.part()[1:]), gates.dtype)

        def shown(time: int, h: Array, last: bool) -> None:
            out[time] = self.narrowed(h, dtype)
            run.feed(h)

        run.feed(state)
        h, last = self.steps(op, run, wide.__getitem__, state, more[0] if more else None, shown)
        found = [out, *(self.narrowed(each, dtype) for each in (h, last)[: len(op.results) - 1])]
        return tuple(
            np.ascontiguousarray(self.out_of_lanes(array)).reshape(result.shape)
            for array, result in zip(found, op.results)
        )

    def gates_in_lanes(self, op: Recurrence, gates: Array) -> Array:
        """(T, gates, L, N, J) of the inputs."""
        size = self.sizes(op)
        return gates.reshape(size.steps, size.images, size.lanes, size.run, op.count).transpose(0, 4, 2, 1, 3)

    def in_lanes(self, op: Recurrence, x: Array) -> Array:
        """(1, L, N, J) of (N, H), and of (H) with N = 1."""
        size = self.sizes(op)
        return x.reshape(-1, size.lanes, size.run).transpose(1, 0, 2)[None]

    def out_of_lanes(self, x: Array) -> Array:
        """The values of (..., L, N, J) in order."""
        return x.swapaxes(1, 2)

    # -- its one tile --------------------------------------------------------------------------------------------------
    def grid(self, op: Recurrence) -> tuple[Axis, ...]:
        return (Axis(1),) * 4

    def work(self, op: Recurrence, box: Box) -> TileWork:
        counted = self.counted(self, op)
        counted.all()
        inputs = [self.gates_loaded(op, counted.cycles), self.loaded(op, op.state, self.sizes(op).part())]
        if op.extra is not None:
            inputs.append(self.loaded(op, op.extra, self.extra(op)))
        inputs += [self._weights(op, number) for number in range(len(BLOCKS[op.cell]))]
        outputs = [self.sequence_stored(op), *(self.stored(op, value) for value in op.results[1:])]

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            self.emitted(self, op, build, scratch).all(ins, outs)

        return TileWork(tuple(inputs), tuple(outputs), self.scratch(op), compute, counted.cycles)

    def extra(self, op: Recurrence) -> Shape:
        """As it is loaded: a cell, or a bias of all images."""
        size = self.sizes(op)
        return size.part() if op.cell == "lstm" else (1, size.lanes, 1, size.run)

    def scratch(self, op: Recurrence) -> tuple[int, ...]:
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

    def gates_loaded(self, op: Recurrence, cycles: int) -> Buffer:
        """The inputs of all steps: the first begins when those of its span are there."""
        item, spans, size, row = item_bytes(op.gates), self.spans(op), self.sizes(op), op.count * op.hidden
        shape, strides = size.interleaved(op.count), (size.images * row, size.run * op.count, row, 1)
        step = item * self.chip.aligned_strides(shape, item=item)[0]

        def load(build: LaneBuild, address: int) -> None:
            source = build.source(op.gates)
            for span in spans:
                first, part = span.start, (len(span), *shape[1:])
                build.load(source + item * first * strides[0], part, strides, item, address + first * step)

        runs = Runs(shape[0] * shape[2], shape[0] * shape[1] * shape[2])
        space, nbytes = self.chip.aligned_bytes(shape, item), op.gates.type.nbytes
        whole = Buffer(space, "", nbytes, load, is_constant(op.gates), runs=runs, loads=len(spans))
        return self.in_spans(op, whole, cycles)

    def in_spans(self, op: Recurrence, whole: Buffer, cycles: int) -> Buffer:
        """A buffer that is loaded beside so many cycles of steps, but for the first span."""
        tiler, spans = self.machine.tiler, self.spans(op)
        moving = tiler.bus.load(whole) / tiler.bytes_per_cycle
        return replace(whole, late=int(min(moving, cycles) * (len(spans) - 1) / len(spans)))

    def sequence_stored(self, op: Recurrence) -> Buffer:
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

    def loaded(self, op: Recurrence, value: Value, shape: Shape) -> Buffer:
        """A state or bias."""
        item, strides = item_bytes(value), (0, self.sizes(op).run, op.hidden, 1)

        def load(build: LaneBuild, address: int) -> None:
            build.load(build.source(value), shape, strides, item, address)

        return Buffer(self.chip.aligned_bytes(shape, item), "", value.type.nbytes, load, is_constant(value))

    def stored(self, op: Recurrence, value: Value) -> Buffer:
        """A last state."""
        item, shape, strides = item_bytes(value), self.sizes(op).part(), (0, self.sizes(op).run, op.hidden, 1)

        def store(build: LaneBuild, address: int) -> None:
            build.store(build.neuron(value), shape, strides, item, address)

        return Buffer(self.chip.aligned_bytes(shape, item), "nchw", value.type.nbytes, store)


@dataclass
class _Computed(CellRun):
    """Arrays (gates, lanes, images, neighbours) of fp32."""

    weights: list[Array]
    fed: Array = field(init=False)
    places: dict[str, Array] = field(default_factory=dict)

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
