"""Products with packed weights: unpacked in lanes while the next ones arrive (bm1684x-llm.md 7.1 and 8).

Outputs lie in lanes: weights are the left operand of the product, so that one row of x takes no longer than four. The
result is transposed within local memory.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.kernels.packed_rows import HALF, PackedRows
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Range
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation, is_constant
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.groups.regions import RANK, four_axes, rows_of
from bmcompiler.codegen.stream import Stream
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Runs, TileWork
from bmcompiler.numeric.packed_weights import TYPES
from bmcompiler.ops.layers.weight_only import WeightOnlyMatmul
from bmcompiler.target import rule

_SLOTS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Outputs of each lane that are tried as a share."""


class WeightOnlyKernel(LocalKernel[WeightOnlyMatmul]):
    """weight_only_matmul of 16-bit floats with constant weights."""

    ops = (WeightOnlyMatmul,)
    grid_of_result = False

    @rule("x must be an activation of f16 or bf16")
    def known_type(self, op: WeightOnlyMatmul) -> bool:
        return op.x.dtype in TYPES and is_activation(op.x)

    @rule("Codes, scales and zero points must be constants")
    def constant_weights(self, op: WeightOnlyMatmul) -> bool:
        return all(map(is_constant, op.operands[1:]))

    @rule("An output must have at most {kernel.chip.most_size} weights, and as many bytes of constants")
    def known_sizes(self, op: WeightOnlyMatmul) -> bool:
        return max(op.x.shape[-1], PackedRows(self.machine, op).pitch) <= self.chip.most_size

    def grid(self, op: WeightOnlyMatmul) -> tuple[Axis, ...]:
        lanes, most = self.chip.lanes, self.chip.most_channels
        return Axis(_rows(op), lanes, most), Axis(op.weight.shape[0], lanes, most), Axis(1), Axis(1)

    def work(self, op: WeightOnlyMatmul, box: Box) -> TileWork:
        (r0, r1), (n0, n1) = box[:2]
        constants, rows, count = PackedRows(self.machine, op), r1 - r0, n1 - n0

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            constants.emit(build, ins[1], count, _words(op, ins[0], rows), scratch, outs[0], count)

        view, made = (1, _rows(op), 1, op.weight.shape[0]), ((0, 1), (r0, r1), (0, 1), (n0, n1))
        out = self.machine.activation_out(op.result, view, made)
        inputs = (self._x(op, (r0, r1)), constants.buffer((n0, n1), "c"))
        sizes, cycles = constants.scratch(count, rows, count), constants.cycles(count, rows, count)
        return TileWork(inputs, (out,), sizes, compute, cycles, constants.apart(count))

    def boxed(self, op: WeightOnlyMatmul, box: Box) -> TileWork | None:
        """Some rows and outputs."""
        found = rows_of(four_axes(op.type.shape), box, parts=True)
        if found is None or op.type.rank == RANK or box[3][1] - box[3][0] > self.chip.most_channels:
            return None
        part: Box = (found[1], box[3], (0, 1), (0, 1))
        work = replace(self.work(op, part), box=part)
        return work if self.fits(work) else None

    def whole(self, op: WeightOnlyMatmul) -> TileWork | None:
        """x and the result stay in local memory; constants arrive in shares, in turn in a few places."""
        outputs = op.weight.shape[0]
        sizes = dict.fromkeys(min(slots * self.chip.lanes, outputs) for slots in _SLOTS)
        found = [work for work in (self._streamed(op, size) for size in sizes) if self.fits(work)]
        return min(found, key=self._time, default=None)

    def _streamed(self, op: WeightOnlyMatmul, size: int) -> TileWork:
        """In shares of so many outputs."""
        constants, rows, outputs = PackedRows(self.machine, op), _rows(op), op.weight.shape[0]
        shares = [(first, min(first + size, outputs)) for first in range(0, outputs, size)]
        block, buffers = constants.block(size), [constants.buffer(share, "") for share in shares]
        steps = tuple(constants.cycles(end - first, rows, outputs) for first, end in shares)
        loads = tuple(constants.load_cycles(end - first) for first, end in shares[2:])
        places = 3 if steps[0] < sum(loads[:1]) else 2  # a bus that is busy all the time shall wait for no step

        def load(build: LaneBuild, address: int) -> None:
            for number, buffer in enumerate(buffers[:2]):
                buffer.transfer(build, address + number * block)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            x = _words(op, ins[0], rows)
            for number, (first, end) in enumerate(shares):
                place, target = ins[1] + number % places * block, outs[0] + HALF * first
                if number > 1:
                    buffers[number].transfer(build, place)
                constants.emit(build, place, end - first, x, scratch, target, outputs)

        ahead, runs = buffers[:2], Runs(1, min(2 * size, outputs))
        moved = sum(buffer.nbytes for buffer in ahead)
        late = min(steps[0], constants.load_cycles(size)) if loads else 0  # the first share waits for its own load
        coming = Buffer(min(places, len(shares)) * block, "", moved, load, True, runs=runs, loads=len(ahead), late=late)
        view = (1, rows, 1, outputs)
        out = self.machine.activation_out(op.result, view, tuple((0, length) for length in view))
        counts = {end - first for first, end in shares}
        areas = tuple(map(max, zip(*(constants.scratch(count, rows, outputs) for count in counts))))
        inputs, apart = (self._x(op, (0, rows)), coming), constants.apart(size, len(shares))
        if not loads:
            return TileWork(inputs, (out,), areas, compute, sum(steps), apart)
        stream = Stream(steps, loads, sum(buffer.nbytes for buffer in buffers[2:]), True, places)
        return TileWork(inputs, (out,), areas, compute, round(stream.times(0, 0)[0]), apart, stream=stream)

    def _time(self, work: TileWork) -> float:
        """Cycles of a work alone, from the first load of its constants on."""
        timing = self.machine.cycles
        first = timing.bus.load(work.inputs[1]) / timing.bytes_per_cycle
        if work.stream is None:
            return first + work.cycles + timing.tile_cycles
        ends, _ = work.stream.times(first / 2, first)
        return ends + len(work.stream.steps) * timing.tile_cycles

    def _x(self, op: WeightOnlyMatmul, rows: Range) -> Buffer:
        depth = op.x.shape[-1]
        return self.machine.activation_in(op.x, (1, _rows(op), 1, depth), ((0, 1), rows, (0, 1), (0, depth)), "n")


def _rows(op: WeightOnlyMatmul) -> int:
    return prod(op.x.shape[:-1])


def _words(op: WeightOnlyMatmul, address: int, rows: int) -> Words:
    return Words(address, (1, rows, 1, op.x.shape[-1]), item=HALF, dtype=op.x.dtype)
