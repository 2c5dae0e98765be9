"""Integer element-wise kernels: on packed integers where that is exact, else one element per word; tables of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any, ClassVar

import numpy as np

from bmcompiler.backends.bm1684.build import Build, extents, lane_bytes
from bmcompiler.backends.bm1684.chip import CHIP, aligned_strides
from bmcompiler.backends.bm1684.instructions.packed import Packed, pack_words
from bmcompiler.backends.bm1684.instructions.words import lookup, lookup_bytes
from bmcompiler.backends.bm1684.packed.int_recipes import program
from bmcompiler.backends.bm1684.packed.int_steps import pack_words_cycles
from bmcompiler.backends.lanes.facts import Shape, Strides
from bmcompiler.backends.lanes.kernels.base import (
    DeviceKernel,
    LocalKernel,
    contents_of,
    is_activation,
    is_constant,
    item_bytes,
)
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.backends.lanes.kernels.functions.activation import FunctionKernel
from bmcompiler.backends.lanes.kernels.functions.broadcast import (
    box_axes,
    box_offset,
    broadcast_view,
    is_dense,
    merged_axes,
)
from bmcompiler.backends.lanes.kernels.functions.compare import BitKernel, CompareKernel, WhereKernel
from bmcompiler.backends.lanes.kernels.functions.convert import CastKernel
from bmcompiler.backends.lanes.kernels.functions.elementwise import BinaryKernel, repeated, result_buffer
from bmcompiler.backends.lanes.kernels.functions.int_words import IntWordsKernel
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.recipes import Recorder
from bmcompiler.codegen.build import dense_strides as global_strides
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Prelu, Relu
from bmcompiler.ops.elements.elementwise import Add, Max, Min, Mul, Sub
from bmcompiler.ops.elements.integer import (
    AddShift,
    AddsShift,
    Lut,
    LutSoftmax,
    MacShift,
    Maxs,
    Mins,
    MulShift,
    MulsShift,
    RoundRshift,
    SubShift,
)
from bmcompiler.target import OpT, rule

_ENTRIES = 256  # of a table
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
    """Bytes to bytes: a lookup takes the bytes of words in turn and gives a word for each, which are packed again."""

    def grid(self, op: Lut) -> tuple[Axis, ...]:
        return self.machine.elementwise_grid(self.machine.flat_view(op.type.shape, 1), 1)

    def work(self, op: Lut, box: Box) -> TileWork:
        view, dims = self.machine.flat_view(op.type.shape, 1), extents(box)
        alone = view[0] == 1  # a byte in each word

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            table = build.table(*table_of(op, build.coefficients))
            words = Words(ins[0], CHIP.words_of(dims, 1))
            if alone:
                lookup(build, Words(outs[0], words.shape), words, table, _ENTRIES)
                return
            lookup_bytes(build, Words(scratch[0], _apart(dims)), words, table, _ENTRIES)
            _pack_apart(build, dims, scratch, outs[0])

        cycles = self.machine.cycles.lookup(_apart(dims)) + sum(
            map(partial(pack_words_cycles, self.machine.cycles), _groups(dims))
        )
        return TileWork(
            (self.machine.activation_in(op.x, view, box), table_load(op)),
            (self.machine.activation_out(op.result, view, box),),
            () if alone else (lane_bytes(_apart(dims)), lane_bytes(_halves(dims), 1)),
            compute,
            self.machine.cycles.lookup(CHIP.words_of(dims, 1)) if alone else cycles,
        )


def _apart(dims: Shape) -> Shape:
    """A word for each byte of the words of a tile."""
    n, c, h, w = CHIP.words_of(dims, 1)
    return (n, c, h, _SLOTS * w) if _SLOTS * w <= CHIP.most_size else (n, c, _SLOTS * h, w)


def _groups(dims: Shape) -> list[Shape]:
    """The images of a tile that share words."""
    n, *image = dims
    return [(min(_SLOTS, n - first), *image) for first in range(0, n, _SLOTS)]  # type: ignore[misc]


def _halves(dims: Shape) -> Shape:
    """Images of the halves of words that hold a number of each image of a group."""
    n, c, h, w = _groups(dims)[0]
    return 2 * n, c, h, w


def _pack_apart(build: Build, dims: Shape, scratch: Sequence[int], result: int) -> None:
    """The low bytes of the words of `_apart` in scratch[0] into the words of a tile; scratch[1]: for halves."""
    plane, channel, _, _ = aligned_strides(_apart(dims))
    after = aligned_strides(CHIP.words_of(dims, 1))[0]
    steps = 1, channel, _SLOTS * dims[3], _SLOTS
    for number, group in enumerate(_groups(dims)):
        words, target = scratch[0] + 4 * number * plane, result + 4 * number * after
        pack_words(build, group, words, scratch[1], target, False, steps)


class WordLutKernel(_LutKernel):
    """One byte per word, entries of every type: a single command looks up all of them."""

    def grid(self, op: Lut) -> tuple[Axis, ...]:
        return self.machine.elementwise_grid(self.machine.flat_view(op.type.shape))

    def work(self, op: Lut, box: Box) -> TileWork:
        view, dims = self.machine.flat_view(op.type.shape), extents(box)
        strides = global_strides(view)

        def load(build: Build, address: int) -> None:
            build.load_low(build.source(op.x) + box_offset(strides, box), 1, dims, strides, address)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            steps = self.machine.recorded(Recorder.lookup, 1, build.table(*table_of(op, build.coefficients)))
            steps.emit(build, dims, ins[:1], outs[0])

        apart = Buffer(lane_bytes(dims), "nchw", prod(dims), load)  # of a single image these are its words
        return TileWork(
            (self.machine.activation_in(op.x, view, box) if view[0] == 1 else apart, table_load(op)),
            (result_buffer(self.chip, op.result, view, box),),
            (),
            compute,
            self.machine.recorded(Recorder.lookup, 1, 0).cycles(dims),
        )


def table_load(op: Lut | LutSoftmax) -> Buffer:
    """The table as an input, so that it arrives before it is needed; it takes no room in lanes."""

    def load(build: Build, address: int) -> None:
        build.table(*table_of(op, build.coefficients))

    return Buffer(0, "", CHIP.word * _ENTRIES, load, coefficient=True)


def table_of(op: Lut | LutSoftmax, coefficients: Coefficients) -> tuple[int, int]:
    """(place, bytes) of the table of an op among the coefficients."""
    return coefficients.place(op.table, "lut words", _words), CHIP.word * _ENTRIES


class LutKernel(FormsKernel[Lut]):
    """lut of bytes; entries of every type of at most 32 bits."""

    ops = (Lut,)
    kinds: ClassVar[tuple[type[DeviceKernel[Any]], ...]] = (ByteLutKernel, WordLutKernel)

    def form(self, op: Lut) -> DeviceKernel[Any]:
        return self.forms[item_bytes(op.table) != 1]


def _words(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """One entry per word, of bytes without their sign."""
    if table.dtype.itemsize == 1:
        table = table.view(np.uint8)
    return table if table.dtype.itemsize == 4 else table.astype(np.int32)


def operand_shapes(op: TensorOp) -> tuple[tuple[int, ...], ...]:
    """Shape of each operand as it broadcasts to the result's; the slopes of prelu lie along an axis."""
    if isinstance(op, Prelu):
        after = op.input.type.rank - op.axis - 1
        return op.input.shape, (op.slope.type.size, *(1,) * after)
    return tuple(v.shape for v in op.operands)


class PackedKernel(LocalKernel[TensorOp]):
    """Commands on bytes of four images, or halfwords of two, in a word (bm1684.md 4.2, 6.4)."""

    @rule("An operand must be an activation, not all of them constants")
    def some_activation(self, op: TensorOp) -> bool:
        return any(map(is_activation, op.operands))

    @rule("Integers must be i8, u8, i16, u16 or bool, and commands on 8 and 16 bits must be exact for all values")
    def exact(self, op: TensorOp) -> bool:
        return program(op) is not None

    @rule("Broadcasting must not need more than four axes")
    def few_axes(self, op: TensorOp) -> bool:
        shapes = operand_shapes(op)
        return all(s == op.type.shape for s in shapes) or len(merged_axes(op.type.shape, shapes)) <= 4

    def grid(self, op: TensorOp) -> tuple[Axis, ...]:
        return self.machine.elementwise_grid(_view(self.machine, op)[0], _smallest(op))

    def work(self, op: TensorOp, box: Box) -> TileWork:
        view, strides = _view(self.machine, op)
        dims, steps = extents(box), program(op)
        assert steps is not None, "the rule `exact` found steps"
        operands = [_operand(v, view, by, box) for v, by in zip(op.operands, strides)]

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            planes = [plane._replace(address=address) for address, (_, plane) in zip(ins, operands)]
            steps.emit(build, dims, planes, outs[0], scratch)

        return TileWork(
            tuple(buffer for buffer, _ in operands),
            (self.machine.activation_out(op.result, view, box),),
            tuple(lane_bytes(dims, item) for item in steps.scratch),
            compute,
            steps.cycles(self.machine.cycles, dims),
        )


def _smallest(op: TensorOp) -> int:
    """Bytes of the smallest element: tiles hold whole words of these."""
    return min(map(item_bytes, (*op.operands, op.result)))


def _view(machine: LaneMachine, op: TensorOp) -> tuple[Shape, tuple[Strides, ...]]:
    """A 4-D shape of the result, and the strides of each operand in it (0 = broadcast)."""
    shapes = operand_shapes(op)
    if all(s == op.type.shape for s in shapes):
        view = machine.flat_view(op.type.shape, _smallest(op))
        return view, (global_strides(view),) * len(shapes)
    return broadcast_view(machine, op.type.shape, shapes, _smallest(op))


def _operand(value: Value, view: Shape, strides: Strides, box: Box) -> tuple[Buffer, Packed]:
    """How a tile of an operand is loaded, and how it is read.

    What repeats along n, h or w is loaded once and read by zero strides, along n as the first image of each word
    (bm1684.md 6.4); along c every lane needs its own copy.
    """
    dims, item = extents(box), item_bytes(value)
    n, c, h, w = (1 if step == 0 and axis != 1 else size for axis, (size, step) in enumerate(zip(dims, strides)))
    loaded: Shape = (n, c, h, w)

    def load(build: Build, address: int) -> None:
        build.load(build.source(value) + item * box_offset(strides, box), loaded, strides, item, address)

    buffer = Buffer(
        lane_bytes(loaded, item),
        box_axes(CHIP, strides, view, item),
        prod(loaded) * item,
        load,
        not is_activation(value),
        contents_of(value, view, box)
        if is_dense(strides, view) and loaded == dims
        else repeated(value, view, strides, box, loaded, item),
    )
    if loaded == dims:
        return buffer, Packed(0, item, False)
    words = aligned_strides((-(-n * item // 4), c, h, w))
    local = tuple(0 if a != b else s for a, b, s in zip(loaded, dims, words))
    return buffer, Packed(0, item, False, local, one=n != dims[0])  # type: ignore[arg-type]


class _PackedFirst(FormsKernel[OpT]):
    """Packed integers where that is exact; the second form is slower, or for other element types."""

    def form(self, op: OpT) -> DeviceKernel[Any]:
        return self.forms[program(op) is None]


class IntegerKernel(_PackedFirst[TensorOp]):
    """Sums, products and shifts of integers: on packed bytes where that is exact, else as floats."""

    ops = (AddShift, SubShift, MulShift, MulsShift, AddsShift, RoundRshift, MacShift, Maxs, Mins)
    kinds: ClassVar[tuple[type[DeviceKernel[Any]], ...]] = (PackedKernel, IntWordsKernel)

    def form(self, op: TensorOp) -> DeviceKernel[Any]:
        packed, words = self.forms
        return super().form(op) if type(op) in words.ops else packed


class BitForms(_PackedFirst[TensorOp]):
    """bit_and, bit_or, bit_xor, bit_not."""

    ops = BitKernel.ops
    kinds = (PackedKernel, BitKernel)


class CompareForms(_PackedFirst[TensorOp]):
    """Comparisons: of packed integers, else of words."""

    ops = CompareKernel.ops
    kinds = (PackedKernel, CompareKernel)


class WhereForms(_PackedFirst[TensorOp]):
    """Choices by a condition: of packed integers, else of words."""

    ops = WhereKernel.ops
    kinds = (PackedKernel, WhereKernel)


class CastForms(_PackedFirst[TensorOp]):
    """Casts: between packed integers, else by words."""

    ops = CastKernel.ops
    kinds = (PackedKernel, CastKernel)


class BinaryForms(FormsKernel[TensorOp]):
    """add, sub, mul, max, min of floats and integers; div and pow of floats."""

    ops = BinaryKernel.ops
    kinds = (BinaryKernel, IntegerKernel)

    def form(self, op: TensorOp) -> DeviceKernel[Any]:
        return self.forms[not op.type.is_float and isinstance(op, (Add, Sub, Mul, Max, Min))]


class FunctionForms(FormsKernel[TensorOp]):
    """Functions of one float tensor, relu also of integers."""

    ops = FunctionKernel.ops
    kinds = (FunctionKernel, IntegerKernel)

    def form(self, op: TensorOp) -> DeviceKernel[Any]:
        return self.forms[not op.type.is_float and isinstance(op, Relu)]
