"""Products of byte matrices by the matrix instruction: rows of sections, a lane each (bm1684.md 4.5, 6.3).

It multiplies one row at a time, where a convolution takes four (`int_matmul`), but matrices move between both memories
in runs of a section, where channels of a convolution move byte by byte.
"""

from __future__ import annotations

from math import prod

import numpy as np

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.chip import CHIP, aligned_strides
from bmcompiler.backends.bm1684.cycles import TileCycles
from bmcompiler.backends.bm1684.instructions.packed import Number, Packed, emit_packed
from bmcompiler.backends.bm1684.instructions.products import ByteMatrix, byte_product, move_bytes
from bmcompiler.backends.bm1684.instructions.transfers import Side, in_lane, transfer
from bmcompiler.backends.bm1684.isa import Direction, Eu
from bmcompiler.backends.bm1684.machine import cycles_of
from bmcompiler.backends.bm1684.packed.int_requantize import Requantize
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation, is_constant
from bmcompiler.backends.lanes.kernels.sums.product import Product, product_of
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Runs, TileWork
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.target import rule

_DEEP = 128
"""Bytes of the sections of a left operand: a lane's alignment."""
_STEP = 16
"""Columns of sections go up by as many as the execution units make at once."""
_WIDEST = 512
_MOST_MULTIPLIER = 255
_WORD = 4


class IntMatrixKernel(LocalKernel[Matmul]):
    """matmul of i8 and u8 as matrices, to bytes, with a shift or in mode low."""

    ops = (Matmul,)
    grid_of_result = False

    @rule("As a matrix the left operand must be an activation that is not transposed")
    def plain_left(self, op: Matmul) -> bool:
        return is_activation(op.left) and not op.transpose_left

    @rule("As a matrix the right operand must be a constant, or an activation that is not transposed")
    def plain_right(self, op: Matmul) -> bool:
        return is_constant(op.right) or (is_activation(op.right) and not op.transpose_right)

    @rule("As a matrix the result must be bytes, made by a shift, or in mode low by a scale up to 1")
    def one_product(self, op: Matmul) -> bool:
        if op.type.dtype not in ("i8", "u8") or op.mode not in ("", "low"):
            return False
        end = Requantize(self.machine, op)
        return not end.multiplies or (end.factor is not None and end.factor.multiplier <= _MOST_MULTIPLIER)

    @rule("A bias must be a constant of 16 bits")
    def narrow_bias(self, op: Matmul) -> bool:
        return op.bias is None or (is_constant(op.bias) and op.bias.dtype in ("i16", "u16"))

    @rule("The sums must fit 32 bits: a smaller depth")
    def exact_sums(self, op: Matmul) -> bool:
        return Requantize(self.machine, op).fits_accumulator(product_of(op).depth)

    def grid(self, op: Matmul) -> tuple[Axis, ...]:
        product, row = product_of(op), section_width(self.machine, product_of(op)) * CHIP.lanes
        most = CHIP.most_channels // CHIP.lanes * row
        columns = Axis(product.columns, row, most)
        return Axis(product.rows, 1, CHIP.most_size), columns, Axis(len(product.pairs), 1, 1), Axis(1)

    def evaluate(self, op: Matmul, *arrays: np.ndarray) -> np.ndarray:
        """The op itself: sums are exact and rounding is the op's."""
        found: np.ndarray = op.evaluate(*arrays)
        return found

    def work(self, op: Matmul, box: Box) -> TileWork:
        product, end, width = product_of(op), Requantize(self.machine, op), section_width(self.machine, product_of(op))
        (r0, r1), (c0, c1), (batch, _) = box[:3]
        rows, columns = r1 - r0, c1 - c0
        inputs = [_left(op, product, batch, r0, r1), _right(op, product, width, batch, (c0, c1))]
        if op.bias is not None:
            inputs.append(_bias(op, width, c0, c1))
        shape = ByteMatrix(0, rows, columns, width).shape

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            result = ByteMatrix(outs[0], rows, columns, width)
            left = ByteMatrix(ins[0], rows, product.depth, min(product.depth, _DEEP))
            right = ByteMatrix(ins[1], product.depth, columns, width)
            bias = ByteMatrix(ins[2], 1, columns, width, 2) if op.bias is not None else None
            byte_product(build, result, left, right, bias, end.numbers)
            _finish(build, end, result)

        first = (batch * product.rows + r0) * product.columns + c0

        def store(build: Build, address: int) -> None:
            source = ByteMatrix(address, rows, columns, width)
            move_bytes(build, build.neuron(op.result) + first, product.columns, source, store=True)

        runs = Runs(rows if columns < product.columns else 1, rows * shape[1])
        place = ByteMatrix(0, rows, columns, width).lane_bytes
        out = Buffer(place, "nch", rows * columns, store, runs=runs)
        cycles, groups = cycles_of(self.machine), rows * -(-shape[1] // CHIP.lanes) * -(-width // _STEP)
        sums = int(cycles.table.matrix(groups, product.depth, True))
        steps = end.multiplies + (end.all_unsigned and end.signed) + (end.relu and not end.all_unsigned)
        finish = cycles.pass_cycles((4, shape[1], rows, width // _WORD), 1)
        return TileWork(tuple(inputs), (out,), (), compute, sums + steps * finish)


def section_width(machine: LaneMachine, product: Product) -> int:
    """Columns of the sections of the right operand and the result."""
    return machine.decided(_section_width, cycles_of(machine), product.rows, product.depth, product.columns)


def _section_width(cycles: TileCycles, rows: int, depth: int, columns: int) -> int:
    """That for which products and the loads of their weights take least time."""

    def taken(width: int) -> int:
        sections = -(-columns // width)
        groups = rows * -(-sections // CHIP.lanes) * -(-width // _STEP)
        weights = cycles.load(1, depth * sections * width, depth * sections)
        return int(cycles.table.matrix(groups, depth, True)) + weights

    return min(range(_STEP, _WIDEST + 1, _STEP), key=taken)


def _finish(build: Build, end: Requantize, result: ByteMatrix) -> None:
    """What is left of the requantization, on words of four columns."""
    rows, sections, _, width = result.shape
    row, section, _, _ = (step // _WORD for step in result.strides)
    dims = (4, sections, rows, width // _WORD)

    def view(signed: bool) -> Packed:
        return Packed(result.address, 1, signed, (0, section, row, 1))

    if end.all_unsigned and end.signed:
        emit_packed(build, Eu.MIN, dims, view(False), view(False), Number(127, 1, False))
    values = view(end.signed)
    if end.multiplies:
        assert end.factor is not None, "asked of modes with a factor"
        emit_packed(build, Eu.MUL, dims, values, values, Number(end.factor.multiplier, 1, False), right=7)
    if end.relu and not end.all_unsigned:
        emit_packed(build, Eu.MAX, dims, values, values, Number(0, 1, True))


def _left(op: Matmul, product: Product, batch: int, r0: int, r1: int) -> Buffer:
    matrix = ByteMatrix(0, r1 - r0, product.depth, min(product.depth, _DEEP))
    first = (product.pairs[batch][0] * product.rows + r0) * product.depth

    def load(build: Build, address: int) -> None:
        move_bytes(build, build.source(op.left) + first, product.depth, matrix._replace(address=address))

    axes = "nh" if len({a for a, _ in product.pairs}) > 1 else "n"
    runs = Runs(1, matrix.rows * matrix.shape[1])
    return Buffer(matrix.lane_bytes, axes, matrix.rows * product.depth, load, runs=runs)


def _right(op: Matmul, product: Product, width: int, batch: int, columns: tuple[int, int]) -> Buffer:
    (c0, c1), depth, number = columns, product.depth, product.pairs[batch][1]
    matrix = ByteMatrix(0, depth, c1 - c0, width)
    pitch, sections = -(-product.columns // width) * width, matrix.shape[1]

    def pack(w: np.ndarray) -> np.ndarray:
        return _padded(w.swapaxes(-1, -2) if op.transpose_right else w, width)

    def load_constant(build: Build, address: int) -> None:
        layout = f"matrix{' transposed' * op.transpose_right} in sections of {width}"
        start = number * depth * pitch + c0
        origin = build.coefficient(build.coefficients.place(op.right, layout, pack) + start)
        _load_words(build, origin, (depth, sections, 1, width), pitch, address, 1)

    def load(build: Build, address: int) -> None:
        first = number * depth * product.columns + c0
        move_bytes(build, build.source(op.right) + first, product.columns, matrix._replace(address=address))

    constant, axes = is_constant(op.right), "ch" if len({b for _, b in product.pairs}) > 1 else "c"
    runs = Runs(1 if constant and c1 - c0 == product.columns else depth, depth * sections)
    nbytes = depth * sections * width
    return Buffer(matrix.lane_bytes, axes, nbytes, load_constant if constant else load, constant, runs=runs)


def _bias(op: Matmul, width: int, c0: int, c1: int) -> Buffer:
    matrix = ByteMatrix(0, 1, c1 - c0, width, 2)
    bias = op.bias
    assert bias is not None, "asked of products with a bias"

    def load(build: Build, address: int) -> None:
        offset = build.coefficients.place(bias, f"in sections of {width}", lambda b: _padded(b.reshape(-1), width))
        _load_words(build, build.coefficient(offset + 2 * c0), matrix.shape, width, address, 2)

    nbytes = 2 * prod(matrix.shape)
    return Buffer(matrix.lane_bytes, "c", nbytes, load, True, runs=Runs(1, matrix.shape[1]))


def _load_words(
    build: Build, origin: int, shape: tuple[int, int, int, int], pitch: int, address: int, item: int
) -> None:
    """Whole sections of `item`-byte elements, rows `pitch` elements apart, moved as words."""
    rows, sections, _, width = shape
    parts = _WORD // item
    words = (rows, sections, 1, width // parts)
    row, section, _, _ = (step // parts for step in aligned_strides(shape, item=item))
    outer = Side(origin, words, (pitch // parts, width // parts, 0, 1))
    inner = in_lane(address, words, (row, section, 0, 1), (address, address + item * parts * row * rows))
    transfer(build, Direction.SYSTEM_TO_LOCAL, outer, inner)


def _padded(w: np.ndarray, width: int) -> np.ndarray:
    """The last axis with zeros up to whole sections."""
    return np.pad(w, [(0, 0)] * (w.ndim - 1) + [(0, -w.shape[-1] % width)])
