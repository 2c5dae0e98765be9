"""Table lookup of bytes (bm1684.md 6.5, bm1684-recipes.md 90)."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np

from bmcompiler.backends.bm1684.build import Build, extents, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.machine import MACHINE
from bmcompiler.backends.lanes.kernels.base import DeviceKernel, LocalKernel, is_activation, is_constant, item_bytes
from bmcompiler.backends.lanes.kernels.broadcast import box_offset
from bmcompiler.backends.lanes.kernels.elementwise import result_buffer
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.backends.lanes.recipes import Recorder, Register
from bmcompiler.codegen.build import dense_strides as global_strides
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ops.integer import Lut
from bmcompiler.target import rule

_TABLE_BYTES = 4 * 256
_SLOTS = 4  # images of bytes in a word


class _LutKernel(LocalKernel[Lut]):
    """Base: which tables there are."""

    ops = (Lut,)

    @rule("The operand must be an activation, the table a constant")
    def constant_table(self, op: Lut) -> bool:
        return is_activation(op.x) and is_constant(op.table)

    @rule("Entries of the table must not exceed 32 bits")
    def known_entries(self, op: Lut) -> bool:
        return item_bytes(op.table) <= 4


class ByteLutKernel(_LutKernel):
    """Bytes to bytes, four images of a word one after the other.

    A lookup takes the low byte of a word and gives a word, so each image has a table of its own whose entries lie in
    the byte of the image: shift, lookup and or for each but the first.
    """

    def grid(self, op: Lut) -> tuple[Axis, ...]:
        return MACHINE.elementwise_grid(MACHINE.flat_view(op.type.shape, 1), 1)

    def work(self, op: Lut, box: Box) -> TileWork:
        view, dims = MACHINE.flat_view(op.type.shape, 1), extents(box)
        words, slots = CHIP.words_of(dims, 1), min(dims[0], _SLOTS)
        tables = min(view[0], _SLOTS)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            place = build.coefficients.place(op.table, f"lut bytes {tables}", lambda t: _in_slots(t, tables))
            table = build.table(place, tables * _TABLE_BYTES)
            MACHINE.recorded(_lookup_slots, 1, table, slots).emit(build, words, ins, outs[0], scratch)

        most = MACHINE.recorded(_lookup_slots, 1, 0, tables)  # all tiles have as many areas
        return TileWork(
            (MACHINE.activation_in(op.x, view, box),),
            (MACHINE.activation_out(op.result, view, box),),
            (lane_bytes(words),) * most.registers,
            compute,
            MACHINE.recorded(_lookup_slots, 1, 0, slots).cycles(words),
        )


class WordLutKernel(_LutKernel):
    """One byte per word, entries of every type: a single command looks up all of them."""

    def grid(self, op: Lut) -> tuple[Axis, ...]:
        return MACHINE.elementwise_grid(MACHINE.flat_view(op.type.shape))

    def work(self, op: Lut, box: Box) -> TileWork:
        view, dims = MACHINE.flat_view(op.type.shape), extents(box)
        strides = global_strides(view)

        def load(build: Build, address: int) -> None:
            build.load_low(build.source(op.x) + box_offset(strides, box), 1, dims, strides, address)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            place = build.coefficients.place(op.table, "lut words", _words)
            steps = MACHINE.recorded(Recorder.lookup, 1, build.table(place, _TABLE_BYTES))
            steps.emit(build, dims, ins, outs[0])

        return TileWork(
            (Buffer(lane_bytes(dims), "nchw", prod(dims), load),),
            (result_buffer(self.chip, op.result, view, box),),
            (),
            compute,
            MACHINE.recorded(Recorder.lookup, 1, 0).cycles(dims),
        )


class LutKernel(FormsKernel[Lut]):
    """lut of bytes; entries of every type of at most 32 bits."""

    ops = (Lut,)
    kinds: ClassVar[tuple[type[DeviceKernel[Any]], ...]] = (ByteLutKernel, WordLutKernel)

    def form(self, op: Lut) -> DeviceKernel[Any]:
        return self.forms[item_bytes(op.table) != 1]


def _lookup_slots(m: Recorder, x: Register, table: int, slots: int) -> Register:
    """The entries of the bytes of each word, in their places."""
    found = m.lookup(x, table)
    for slot in range(1, slots):
        found = m.or_(found, m.lookup(m.shift(x, -8 * slot), table + slot * _TABLE_BYTES))
    return found


def _in_slots(table: np.ndarray[Any, Any], slots: int) -> np.ndarray[Any, Any]:
    """(slots, 256) words: each entry in the byte of every slot."""
    entries = table.view(np.uint8).astype(np.uint32)
    return np.stack([entries << 8 * slot for slot in range(slots)])


def _words(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """One entry per word."""
    return table if table.dtype.itemsize == 4 else table.astype(np.int32)
