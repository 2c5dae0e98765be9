"""Softmax of bytes: what e to each of them is stands in a table."""

from __future__ import annotations

from math import prod
from typing import Any

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.packed.int_elementwise import table_load, table_of
from bmcompiler.backends.lanes.kernels.base import is_activation, is_constant
from bmcompiler.backends.lanes.kernels.sums.reduced_view import Recipe
from bmcompiler.backends.lanes.kernels.sums.reduction import ReductionKernel
from bmcompiler.backends.lanes.recipes import Recorder, Register, Steps
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box, Buffer, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.elements.integer import LutSoftmax
from bmcompiler.target import rule


class LutSoftmaxKernel(ReductionKernel[LutSoftmax]):
    """lut_softmax: a look-up of the bytes in words, and what each entry is of their sum."""

    ops = (LutSoftmax,)

    @rule("The operand must be i8 or u8, the table a constant")
    def known_types(self, op: LutSoftmax) -> bool:
        return is_activation(op.x) and is_constant(op.table)

    def axes(self, op: LutSoftmax) -> tuple[int, ...]:
        return (op.axis % op.type.rank,)

    def recipe(self, op: LutSoftmax) -> tuple[Any, ...]:
        """Behind the look-up."""
        return (_shares,)

    def recorded(self, op: LutSoftmax) -> Recipe:
        return super().recorded(op)._replace(inputs=1)

    def evaluate(self, op: LutSoftmax, *arrays: Array) -> Array:
        x, table = arrays
        return super().evaluate(op, table[x.view("u1")])

    def work(self, op: LutSoftmax, box: Box) -> TileWork:
        view, dims = self.view(op), extents(box)
        shape, _ = view.moved(dims)
        pieces = list(view.pieces(box, self.machine.cycles))

        def steps(table: int) -> Steps:
            return self.machine.recorded(_softmax, 1, table, axes=view.axes)

        def load(build: Build, address: int) -> None:
            for piece in pieces:
                build.load_part(build.source(op.x) + piece.start, piece.strides, self.local(piece, shape, address), 1)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            found = steps(build.table(*table_of(op, build.coefficients)))
            self.emit_steps(build, op, (found, dims), [ins[0], outs[0]], [], scratch)

        planned = steps(0)
        kept = view.contents(op.x, box) if view.shape[0] == 1 else None  # no other image shares its words
        tile = Buffer(self.chip.aligned_bytes(shape), "nchw", prod(dims), load, contents=kept)
        out, scratch = self._result(op.result, view, box), self.scratch(op, planned, dims)
        return TileWork((tile, table_load(op)), (out,), scratch, compute, self.step_cycles(op, planned, dims))


def _shares(m: Recorder, powers: Register) -> Register:
    """Of their sum."""
    return m.mul(powers, m.div(1.0, m.total(powers)))


def _softmax(m: Recorder, x: Register, table: int) -> Register:
    return _shares(m, m.lookup(x, table))
