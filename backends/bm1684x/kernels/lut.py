"""Tables of bytes: a lookup takes a cycle for each index, of whatever size its entry is (bm1684x.md 8).

So two neighbouring bytes are one index of 16 bits, where a map is large enough: the table of all pairs takes half of
local memory and some 2000 cycles to load, beside other work. A row of it cannot have 65536 entries: what the last index
gives is in the command.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Gather, Precision
from bmcompiler.backends.bm1684x.instructions import special
from bmcompiler.backends.bm1684x.kernels.channel_end import KINDS
from bmcompiler.backends.bm1684x.kernels.int_elementwise import NarrowKernel
from bmcompiler.backends.bm1684x.machine import cycles_of
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import is_activation, is_constant, item_bytes
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.elements.integer import Lut
from bmcompiler.target import rule

_ENTRIES = 256
_PAIRS = _ENTRIES**2 - 1


class LutKernel(NarrowKernel[Lut]):
    """lut of bytes: each lane has the table, of bytes or of pairs of them."""

    ops = (Lut,)

    @rule("The operand must be an activation, the table a constant of bytes or halfwords")
    def known_operands(self, op: Lut) -> bool:
        return is_activation(op.x) and is_constant(op.table) and op.type.dtype in ("i8", "u8", "i16", "u16")

    def whole_work(self, op: Lut, box: Box) -> TileWork:
        """By pairs where that saves more than the larger table takes to load, and where it fits."""
        single = self.work(op, box)
        dims = extents(box)
        if item_bytes(op.result) != 1 or dims[2] * dims[3] % 2:
            return single
        pairs = self.by_pairs(op, box)
        cycles = self.machine.cycles
        larger = cycles.bus.load(pairs.inputs[1]) / cycles.bytes_per_cycle
        return pairs if single.cycles - pairs.cycles > larger and self.fits(pairs) else single

    def work(self, op: Lut, box: Box) -> TileWork:
        item = item_bytes(op.result)

        def place(build: Build) -> int:
            return build.source(op.table)

        def command(build: Build, shape: Shape, source: int, table: int, target: int) -> Any:
            row, index = (table, _ENTRIES, True), (source, shape[3], Precision.INT8)
            return special.by_index(Gather.LANE_FAST, shape, target, row, index, KINDS[op.type.dtype][0])

        return self._looked_up(op, box, extents(box), (_ENTRIES, item), place, command)

    def by_pairs(self, op: Lut, box: Box) -> TileWork:
        """Two bytes by each index."""
        n, c, h, w = extents(box)

        def place(build: Build) -> int:
            return build.coefficient(build.coefficients.place(op.table, "lut pairs", _of_pairs))

        def command(build: Build, shape: Shape, source: int, table: int, target: int) -> Any:
            row, index = (table, _PAIRS, True), (source, shape[3], Precision.INT16)
            last = int(build.coefficients.array(op.table).view(np.uint8)[-1]) * 0x101
            return special.by_index(Gather.LANE_FAST, shape, target, row, index, Precision.INT16, last)

        return self._looked_up(op, box, (n, c, 1, h * w // 2), (_PAIRS, 2), place, command)

    def _looked_up(
        self, op: Lut, box: Box, indices: Shape, table: tuple[int, int], place: Any, command: Any
    ) -> TileWork:
        """table: entries, and their bytes. place: of it. command: the lookup of (n, c, 1, count) indices."""
        inputs, out = self.tile(op, box, self.view(op))
        (n, c, h, w), (entries, item) = indices, table
        shape, lanes = (n, c, 1, h * w), min(c, self.chip.lanes)
        size = self.chip.aligned_bytes((1, 1, 1, entries), item)

        def load(build: Build, address: int) -> None:
            build.load(place(build), (1, lanes, 1, entries), (0, 0, 0, 1), item, address)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            made = self.chip.plane(outs[0], extents(box), item_bytes(op.result))
            reads = [self.chip.plane(ins[0], extents(box), 1), (ins[1], ins[1] + size)]
            build.issue(command(build, shape, ins[0], ins[1], outs[0]), reads, [made])

        transfer: Any = load  # of the chip's own build
        known = Buffer(size, "", entries * item, transfer, True)
        return TileWork((*inputs, known), (out,), (), compute, cycles_of(self.machine).gather(indices))

    def evaluate(self, op: Lut, *arrays: Array) -> Array:
        """The op itself."""
        return op.evaluate(*arrays)

    def grid(self, op: Lut) -> tuple[Axis, ...]:
        n, c, h, w = super().grid(op)
        most = max(1, self.chip.most_size // w.size)
        return (n, c, Axis(h.size, 1, most), w) if w.size <= self.chip.most_size else (n, c, Axis(h.size, 1, 1), w)


def _of_pairs(table: np.ndarray) -> np.ndarray:
    """Two entries for each pair of indices, the first of which is the low byte, but for the last pair."""
    first = table.view(np.uint8).astype(np.uint16)
    return (first[:, None] << 8 | first[None, :]).reshape(-1)[:_PAIRS]
