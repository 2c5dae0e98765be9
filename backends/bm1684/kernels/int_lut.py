"""Table lookup of bytes (bm1684.md 6.5, bm1684-recipes.md 90).

One byte per word: a single command looks up all of them, where four bytes in a word would take ten (shift, lookup and
or for each of the other three).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.build import Build, extents, lane_bytes
from bmcompiler.backends.bm1684.kernels.base import (
    LocalKernel,
    elementwise_grid,
    flat_view,
    is_activation,
    is_constant,
    item_bytes,
)
from bmcompiler.backends.bm1684.kernels.broadcast import box_offset
from bmcompiler.backends.bm1684.kernels.elementwise import recorded, result_buffer
from bmcompiler.backends.bm1684.kernels.words import load_low
from bmcompiler.backends.bm1684.layout import global_strides
from bmcompiler.backends.bm1684.recipes import Machine
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.integer import Lut
from bmcompiler.target import rule

_ENTRIES = 256


class LutKernel(LocalKernel):
    """lut of bytes; entries of every type of at most 32 bits."""

    ops = (Lut,)

    @rule("The operand must be an activation, the table a constant")
    def constant_table(self, op: TensorOp) -> bool:
        return is_activation(op.x) and is_constant(op.table)

    @rule("Entries of the table must not exceed 32 bits")
    def known_entries(self, op: TensorOp) -> bool:
        return item_bytes(op.table) <= 4

    def grid(self, op: TensorOp) -> tuple[Axis, ...]:
        return elementwise_grid(flat_view(op.type.shape))

    def work(self, op: TensorOp, box: Box) -> TileWork:
        view, dims = flat_view(op.type.shape), extents(box)
        strides = global_strides(view)

        def load(build: Build, address: int) -> None:
            load_low(build, build.source(op.x) + box_offset(strides, box), 1, dims, strides, address)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            place = build.coefficients.place(op.table, "lut words", _words)
            steps = recorded(Machine.lookup, 1, build.table(place, 4 * _ENTRIES))
            steps.emit(build, dims, ins, outs[0])

        return TileWork(
            (Buffer(lane_bytes(dims), "nchw", prod(dims), load),),
            (result_buffer(op.result, view, box),),
            (),
            compute,
            recorded(Machine.lookup, 1, 0).cycles(dims),
        )


def _words(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """One entry per word."""
    return table if table.dtype.itemsize == 4 else table.astype(np.int32)
