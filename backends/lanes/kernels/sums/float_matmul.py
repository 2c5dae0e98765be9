"""Matrix products of floats in sections of columns: inner product layers and products of activations.

The order of a sum follows from its depth K alone. Up to 2048 rows of the right operand lie in local memory at once, and
one instruction sums them; deeper products add up chunks of 1024 rows, which are loaded while the one before is used.

Constants are padded to whole sections in global memory, so that they are loaded as one run; sections are as wide as few
rows of the result want them: short runs in lanes take longer to load, wide sections to multiply.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.lanes.arithmetic import Arithmetic
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import LaneFacts
from bmcompiler.backends.lanes.kernels.base import contents_of, is_activation, is_constant
from bmcompiler.backends.lanes.kernels.functions.fused_activation import activation_cycles, emit_activation
from bmcompiler.backends.lanes.kernels.sums.product import MOST_PRODUCTS, FloatProductKernel, Product, product_of
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.matrices import matrix_at, matrix_bytes, matrix_shape, row_columns, usual_width
from bmcompiler.codegen.stream import Stream
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Contents, Runs, TileWork
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.target import rule

Range = tuple[int, int]

_WHOLE = 2048
_CHUNK = 1024


class FloatMatmulKernel(FloatProductKernel):
    """matmul: rows and columns of the result are tiled, one batch at a time; constants as operands are packed first."""

    @rule("Operands, bias and result must be f32")
    def float_types(self, op: Matmul) -> bool:
        return all(v.dtype == "f32" for v in (*op.operands, op.result))

    @rule("Transposed operands must have at most {kernel.chip.most_size} rows and columns")
    def transposable(self, op: Matmul) -> bool:
        transposed = [v for v, t in ((op.left, op.transpose_left), (op.right, op.transpose_right)) if t]
        return all(max(v.shape[-2:]) <= self.chip.most_size for v in transposed)

    def grid(self, op: Matmul) -> tuple[Axis, ...]:
        product, row, most = product_of(op), row_columns(self.chip), self.chip.most_size
        return (
            Axis(product.rows, 1, most),
            Axis(product.columns, row, row if in_lane_runs(self.machine, op) else most // row * row),
            Axis(len(product.pairs), 1, 1),
            Axis(1),
        )

    def work(self, op: Matmul, box: Box) -> TileWork:
        product, chip, timing = product_of(op), self.chip, self.machine.matrix_cycles
        (r0, r1), (c0, c1), (batch, _) = box[:3]
        rows, columns = r1 - r0, c1 - c0
        chunks = chunks_of(product.depth)
        lefts, rights = len({a for a, _ in product.pairs}), len({b for _, b in product.pairs})
        one = _Batch(self.machine, op, product, *product.pairs[batch])
        deep, width = len(chunks) > 1, section_width(self.machine, op)
        right_bytes = (2 * deep or 1) * matrix_bytes(chip, _CHUNK if deep else product.depth, columns, width)
        first = chunks[:2][-1][1]
        across = -(-columns // width) * width if is_constant(op.right) else columns

        def transfer_left(build: LaneBuild, address: int) -> None:
            for (k0, k1), place in zip(chunks, _places(chip, address, rows, chunks)):
                one.load_left(build, (r0, r1), (k0, k1), place)

        def transfer_right(build: LaneBuild, address: int) -> None:
            for i, chunk in enumerate(chunks[:2]):
                one.load_right(build, chunk, (c0, c1), address + i * right_bytes // 2)

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            bias = matrix_at(chip, ins[2], 1, columns, width) if op.bias is not None else None
            result = matrix_at(chip, outs[0], rows, columns, width)
            for i, (chunk, place) in enumerate(zip(chunks, _places(chip, ins[0], rows, chunks))):
                right = ins[1] + i % 2 * (right_bytes // 2)
                if i > 1:
                    one.load_right(build, chunk, (c0, c1), right)
                depth = chunk[1] - chunk[0]
                left = matrix_at(chip, place, rows, depth)
                rows_below = matrix_at(chip, right, depth, columns, width)
                build.multiply(result, left, rows_below, None if i else bias, add=i > 0)
            emit_activation(build, op.activation, result.words)

        def store(build: LaneBuild, address: int) -> None:
            start = (batch * product.rows + r0) * product.columns + c0
            stored = matrix_at(chip, address, rows, columns, width)
            build.store_matrix(build.neuron(op.result) + 4 * start, product.columns, stored)

        inputs = [
            Buffer(
                sum(matrix_bytes(chip, rows, k1 - k0) for k0, k1 in chunks),
                "nh" if lefts > 1 else "n",
                4 * rows * product.depth,
                transfer_left,
                not is_activation(op.left),
                runs=_left_runs(chip, op, rows, chunks),
                loads=len(chunks),
            ),
            Buffer(
                right_bytes,
                "nch" if deep else "ch" if rights > 1 else "c",
                4 * first * across,
                transfer_right,
                not is_activation(op.right),
                runs=_right_runs(self.machine, op, first, columns),
                loads=min(2, len(chunks)),
            ),
        ]
        if op.bias is not None:
            inputs.append(_bias_buffer(chip, op.bias, c0, c1, width))
        shape = matrix_shape(chip, rows, columns, width)
        runs = Runs(rows, rows * shape[1])
        out = Buffer(matrix_bytes(chip, rows, columns, width), "nch", 4 * rows * columns, store, runs=runs)
        steps = [timing.matrix(shape, k1 - k0, op.bias is not None and k0 == 0) for k0, k1 in chunks]
        steps[-1] += activation_cycles(self.machine.cycles, op.activation, shape)
        if not chunks[2:]:
            return TileWork(tuple(inputs), (out,), (), compute, sum(steps))
        loads = tuple(one.loading_right(chunk, columns) for chunk in chunks[2:])
        stream = Stream(tuple(steps), loads, 4 * (product.depth - first) * across, is_constant(op.right))
        return TileWork(tuple(inputs), (out,), (), compute, round(stream.times(0, 0)[0]), stream=stream)

    def whole(self, op: Matmul) -> TileWork | None:
        """All products in one tile, matrices one below the other, so that other ops read and make them.

        Columns that do not fill their sections and transposed operands come from global memory.
        """
        product, chip, width = product_of(op), self.chip, section_width(self.machine, op)
        pairs, rows, depth, columns = product.pairs, product.rows, product.depth, product.columns
        if len(chunks_of(depth)) > 1 or columns % width or len(pairs) > MOST_PRODUCTS:
            return super().whole(op)
        lefts, rights = (max(each) + 1 for each in zip(*pairs))
        steps = [matrix_bytes(chip, rows, depth), matrix_bytes(chip, depth, columns, width)]
        made = matrix_bytes(chip, rows, columns, width)

        def transfer_left(build: LaneBuild, address: int) -> None:
            for number in range(lefts):
                one = _Batch(self.machine, op, product, number, 0)
                one.load_left(build, (0, rows), (0, depth), address + number * steps[0])

        def transfer_right(build: LaneBuild, address: int) -> None:
            for number in range(rights):
                one = _Batch(self.machine, op, product, 0, number)
                one.load_right(build, (0, depth), (0, columns), address + number * steps[1])

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            bias = matrix_at(chip, ins[2], 1, columns, width) if op.bias is not None else None
            for number, (a, b) in enumerate(pairs):
                left = matrix_at(chip, ins[0] + a * steps[0], rows, depth)
                right = matrix_at(chip, ins[1] + b * steps[1], depth, columns, width)
                result = matrix_at(chip, outs[0] + number * made, rows, columns, width)
                build.multiply(result, left, right, bias, add=False)
                emit_activation(build, op.activation, result.words)

        def store(build: LaneBuild, address: int) -> None:
            stored = matrix_at(chip, address, len(pairs) * rows, columns, width)
            build.store_matrix(build.neuron(op.result), columns, stored)

        out_runs = Runs(len(pairs) * rows, len(pairs) * rows * (columns // width))
        contents = None if op.transpose_left else _stacked(op.left, lefts * rows, depth, usual_width(chip, depth))
        left = Buffer(
            lefts * steps[0],
            "",
            op.left.type.nbytes,
            transfer_left,
            not is_activation(op.left),
            contents,
            _left_runs(chip, op, lefts * rows, [(0, depth)]),
            loads=lefts,
        )
        contents = None if op.transpose_right else _stacked(op.right, rights * depth, columns, width)
        runs = _right_runs(self.machine, op, rights * depth, columns)
        right = Buffer(
            rights * steps[1],
            "",
            op.right.type.nbytes,
            transfer_right,
            not is_activation(op.right),
            contents,
            runs,
            loads=rights,
        )
        bias = () if op.bias is None else (_bias_buffer(chip, op.bias, 0, columns, width),)
        kept = _stacked(op.result, len(pairs) * rows, columns, width)
        out = Buffer(len(pairs) * made, "", op.type.nbytes, store, contents=kept, runs=out_runs)
        shape = matrix_shape(chip, rows, columns, width)
        each = self.machine.matrix_cycles.matrix(shape, depth, op.bias is not None)
        each += activation_cycles(self.machine.cycles, op.activation, shape)
        work = TileWork((left, right, *bias), (out,), (), compute, len(pairs) * each)
        return work if self.fits(work) else None

    def sums(self, arithmetic: Arithmetic, left: Array, right: Array, bias: Array | None) -> Array:
        return summed_in_chunks(arithmetic, left, right, bias)


def chunks_of(depth: int) -> list[tuple[int, int]]:
    """Ranges of the depth that one instruction sums."""
    size = depth if depth <= _WHOLE else _CHUNK
    return [(k, min(k + size, depth)) for k in range(0, depth, size)]


def summed_in_chunks(arithmetic: Arithmetic, left: Array, right: Array, bias: Array | None) -> Array:
    """left @ right (+ bias), one command for each chunk of the depth."""
    total: Floats | None = None
    for k0, k1 in chunks_of(left.shape[1]):
        total = arithmetic.product(left[:, k0:k1], right[k0:k1], bias if total is None else None, total)
    assert total is not None, "a product has a depth"
    return total


def _places(chip: LaneFacts, address: int, rows: int, chunks: list[tuple[int, int]]) -> list[int]:
    """Addresses of the chunks of a left operand."""
    places = []
    for k0, k1 in chunks:
        places.append(address)
        address += matrix_bytes(chip, rows, k1 - k0)
    return places


class _Batch(NamedTuple):
    """The operands of one of an op's products, of which parts are loaded."""

    machine: LaneMachine
    op: Matmul
    product: Product
    left: int
    right: int

    def load_left(self, build: LaneBuild, rows: Range, depth: Range, address: int) -> None:
        """Rows by a range of the depth of the left operand."""
        op, product = self.op, self.product
        base = self.left * product.rows * product.depth
        pitch = product.rows if op.transpose_left else product.depth
        start = depth[0] * pitch + rows[0] if op.transpose_left else rows[0] * pitch + depth[0]
        tile = matrix_at(self.machine.chip, address, rows[1] - rows[0], depth[1] - depth[0])
        build.load_matrix(build.source(op.left) + 4 * (base + start), pitch, tile, op.transpose_left)

    def load_right(self, build: LaneBuild, depth: Range, columns: Range, address: int) -> None:
        """A range of the depth by columns of the right operand; a constant one lies as (K, N) in the coefficients."""
        op, product, transposed = self.op, self.product, self.op.transpose_right
        if is_constant(op.right):
            self._load_constant(build, depth, columns, address)
            return
        base, origin = self.right * product.depth * product.columns, build.source(op.right)
        pitch = product.depth if transposed else product.columns
        start = columns[0] * pitch + depth[0] if transposed else depth[0] * pitch + columns[0]
        width = section_width(self.machine, op)  # of all columns: the last tile may have few
        tile = matrix_at(self.machine.chip, address, depth[1] - depth[0], columns[1] - columns[0], width)
        build.load_matrix(origin + 4 * (base + start), pitch, tile, transposed)

    def loading_right(self, depth: Range, columns: int) -> int:
        """Cycles of `load_right` of so many columns."""
        op, product, machine = self.op, self.product, self.machine
        rows, width = depth[1] - depth[0], section_width(machine, op)
        if is_constant(op.right):
            if in_lane_runs(machine, op):
                sections = -(-columns // width)
                return machine.matrix_cycles.load(sections, 4 * rows * width, sections)
            shape = matrix_shape(machine.chip, rows, columns, width)
            return machine.matrix_cycles.load_sections(shape, -(-product.columns // width) * width)
        shape = matrix_shape(machine.chip, rows, columns, width)
        if op.transpose_right:
            return machine.matrix_cycles.load_matrix(shape, (columns, rows), product.depth)
        return machine.matrix_cycles.load_matrix(shape, (rows, columns), product.columns)

    def _load_constant(self, build: LaneBuild, depth: Range, columns: Range, address: int) -> None:
        """The same of a constant: as (batches, K, whole sections) in the coefficients, or as `in_lane_runs` says."""
        op, product = self.op, self.product
        width = section_width(self.machine, op)
        pitch = -(-product.columns // width) * width

        def pack(w: Floats) -> Floats:
            return _padded(w.swapaxes(-1, -2) if op.transpose_right else w, width)

        def pack_lanes(w: Floats) -> Floats:
            padded = pack(w)
            return padded.reshape(*padded.shape[:-1], -1, width).swapaxes(-2, -3)

        layout = f"matrix{' transposed' * op.transpose_right} in sections of {width}"
        if in_lane_runs(self.machine, op):
            rows, sections = depth[1] - depth[0], -(-(columns[1] - columns[0]) // width)
            place = build.coefficients.place(op.right, f"{layout}, a lane each", pack_lanes)
            start = (self.right * pitch + columns[0]) * product.depth + depth[0] * width
            run = product.depth * width
            shape = (1, sections, rows, width)
            build.load(build.coefficient(place + 4 * start), shape, (pitch * product.depth, run, width, 1), 4, address)
            return

        start = (self.right * product.depth + depth[0]) * pitch + columns[0]
        origin = build.coefficient(build.coefficients.place(op.right, layout, pack) + 4 * start)
        shape = matrix_shape(self.machine.chip, depth[1] - depth[0], columns[1] - columns[0], width)
        build.load(origin, shape, (pitch, width, width, 1), 4, address)


def in_lane_runs(machine: LaneMachine, op: Matmul) -> bool:
    """Whether a deep constant lies as (batches, sections, K, columns of a section): each lane's rows are one long run.

    Rows of sections that fill whole vectors follow each other in a lane, as long as no lane has two sections.
    """
    if not is_constant(op.right) or len(chunks_of(product_of(op).depth)) == 1:
        return False
    chip, width = machine.chip, section_width(machine, op)
    return width == chip.execution_units and chip.aligned_bytes((2, 1, 1, width)) == 2 * 4 * width


def _left_runs(chip: LaneFacts, op: Matmul, rows: int, chunks: Sequence[Range]) -> Runs:
    """Of `rows` of the left operand, in so many chunks of the depth."""
    depths = [k1 - k0 for k0, k1 in chunks]
    sections = rows * sum(matrix_shape(chip, rows, depth)[1] for depth in depths)
    if op.transpose_left:
        return Runs(sum(depths), sections)
    return Runs(1 if len(chunks) == 1 else rows * len(chunks), sections)


def _right_runs(machine: LaneMachine, op: Matmul, depth: int, columns: int) -> Runs:
    if in_lane_runs(machine, op):
        sections = -(-columns // section_width(machine, op))
        return Runs(sections, sections)
    sections = depth * matrix_shape(machine.chip, depth, columns, section_width(machine, op))[1]
    return Runs(1 if is_constant(op.right) else depth, sections)


def section_width(machine: LaneMachine, op: Matmul) -> int:
    """Columns of the sections of the right operand and the result."""
    product, chip, timing = product_of(op), machine.chip, machine.matrix_cycles
    section = chip.execution_units
    usual = usual_width(chip, product.columns)
    if not is_constant(op.right) or usual >= min(section, product.columns):
        return usual

    def cycles(width: int) -> int:
        _, sections, _, _ = shape = matrix_shape(chip, product.rows, product.columns, width)
        runs = product.depth * sections
        return timing.matrix(shape, product.depth, op.bias is not None) + timing.load(1, 4 * width * runs, runs)

    whole = (width for width in range(usual + 1, section) if product.columns % width == 0)  # need no padding
    return min((usual, *whole, min(section, product.columns)), key=cycles)


def _stacked(value: Value, rows: int, columns: int, width: int) -> Contents | None:
    """What matrices hold that lie one below the other; None where columns do not fill their sections."""
    view = rows, columns // width, 1, width
    return None if columns % width else contents_of(value, view, view)


def _padded(w: Floats, width: int) -> Floats:
    """The last axis with zeros up to whole sections."""
    return np.pad(w, [(0, 0)] * (w.ndim - 1) + [(0, -w.shape[-1] % width)])


def _bias_buffer(chip: LaneFacts, bias: Value, c0: int, c1: int, width: int) -> Buffer:
    shape = matrix_shape(chip, 1, c1 - c0, width)

    def load(build: LaneBuild, address: int) -> None:
        layout = f"in sections of {width}"
        offset = build.coefficients.place(bias, layout, lambda b: _padded(b.reshape(-1), width))
        build.load(build.coefficient(offset + 4 * c0), shape, (0, width, width, 1), 4, address)

    return Buffer(matrix_bytes(chip, 1, c1 - c0, width), "c", 4 * shape[1] * width, load, True, runs=Runs(1, shape[1]))
