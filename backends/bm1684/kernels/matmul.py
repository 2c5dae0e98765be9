"""Matrix products in fp32: inner product layers and products of activations (bm1684.md 6.3).

The order of a sum follows from its depth K alone. Up to 2048 rows of the right operand lie in local memory at once, and
one instruction sums them; deeper products add up chunks of 1024 rows, which are loaded while the one before is used.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.cycles import CYCLES
from bmcompiler.backends.bm1684.instructions.matrix import (
    ROW,
    load_matrix,
    matrix_at,
    matrix_bytes,
    matrix_shape,
    store_matrix,
)
from bmcompiler.backends.bm1684.instructions.matrix import product as multiply_matrices
from bmcompiler.backends.bm1684.packed.int_matmul import IntMatmulKernel
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation, is_constant
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.backends.lanes.kernels.fused_activation import activate, activation_cycles, emit_activation
from bmcompiler.backends.lanes.kernels.product import Product, product_of
from bmcompiler.codegen.tiling import Axis, Box, Buffer, TileWork
from bmcompiler.ir import Value
from bmcompiler.numeric.fp32 import FloatArray, add
from bmcompiler.numeric.ordered import ordered_product
from bmcompiler.ops.nn import Matmul
from bmcompiler.target import rule

_WHOLE = 2048
_CHUNK = 1024
_MAX_COLUMNS = CHIP.most_size // ROW * ROW


class FloatMatmulKernel(LocalKernel[Matmul]):
    """matmul: rows and columns of the result are tiled, one batch at a time; constants as operands are packed first."""

    ops = (Matmul,)

    @rule("An operand must be an activation")
    def some_activation(self, op: Matmul) -> bool:
        return is_activation(op.left) or is_activation(op.right)

    @rule("The bias must be a constant")
    def constant_bias(self, op: Matmul) -> bool:
        return is_constant(op.bias)

    @rule("Operands, bias and result must be f32")
    def float_types(self, op: Matmul) -> bool:
        return all(v.dtype == "f32" for v in (*op.operands, op.result))

    @rule("Transposed operands must have at most 65535 rows and columns")
    def transposable(self, op: Matmul) -> bool:
        transposed = [v for v, t in ((op.left, op.transpose_left), (op.right, op.transpose_right)) if t]
        return all(max(v.shape[-2:]) <= CHIP.most_size for v in transposed)

    def grid(self, op: Matmul) -> tuple[Axis, ...]:
        product = product_of(op)
        return (
            Axis(product.rows, 1, CHIP.most_size),
            Axis(product.columns, ROW, _MAX_COLUMNS),
            Axis(len(product.pairs), 1, 1),
            Axis(1),
        )

    def work(self, op: Matmul, box: Box) -> TileWork:
        product = product_of(op)
        (r0, r1), (c0, c1), (batch, _) = box[:3]
        rows, columns = r1 - r0, c1 - c0
        chunks = chunks_of(product.depth)
        lefts, rights = len({a for a, _ in product.pairs}), len({b for _, b in product.pairs})
        load_left, load_right = (partial(load, op, product, batch) for load in (_load_left, _load_right))
        stream = len(chunks) > 1
        right_bytes = 2 * matrix_bytes(_CHUNK, columns) if stream else matrix_bytes(product.depth, columns)

        def transfer_left(build: Build, address: int) -> None:
            for (k0, k1), place in zip(chunks, _places(address, rows, chunks)):
                load_left(build, (r0, r1), (k0, k1), place)

        def transfer_right(build: Build, address: int) -> None:
            for i, chunk in enumerate(chunks[:2]):
                load_right(build, chunk, (c0, c1), address + i * right_bytes // 2)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            bias = matrix_at(ins[2], 1, columns) if op.bias is not None else None
            result = matrix_at(outs[0], rows, columns)
            for i, (chunk, place) in enumerate(zip(chunks, _places(ins[0], rows, chunks))):
                right = ins[1] + i % 2 * (right_bytes // 2)
                if i > 1:
                    load_right(build, chunk, (c0, c1), right)
                depth = chunk[1] - chunk[0]
                left = matrix_at(place, rows, depth)
                multiply_matrices(build, result, left, matrix_at(right, depth, columns), bias, add=i > 0)
            emit_activation(build, op.activation, result.words)

        def store(build: Build, address: int) -> None:
            first = (batch * product.rows + r0) * product.columns + c0
            store_matrix(build, build.neuron(op.result) + 4 * first, product.columns, matrix_at(address, rows, columns))

        inputs = [
            Buffer(
                sum(matrix_bytes(rows, k1 - k0) for k0, k1 in chunks),
                "nh" if lefts > 1 else "n",
                4 * rows * product.depth,
                transfer_left,
                not is_activation(op.left),
            ),
            Buffer(
                right_bytes,
                "nch" if stream else "ch" if rights > 1 else "c",
                4 * product.depth * columns,
                transfer_right,
                not is_activation(op.right),
            ),
        ]
        if op.bias is not None:
            inputs.append(_bias_buffer(op.bias, c0, c1))
        out = Buffer(matrix_bytes(rows, columns), "nch", 4 * rows * columns, store)
        shape = matrix_shape(rows, columns)
        cycles = sum(CYCLES.matrix(shape, k1 - k0) for k0, k1 in chunks) + activation_cycles(
            CYCLES, op.activation, shape
        )
        return TileWork(tuple(inputs), (out,), (), compute, cycles)

    def evaluate(self, op: Matmul, *arrays: Any) -> Any:
        """The op in the chip's arithmetic and order of sums."""
        left, right, *bias = arrays
        product = product_of(op)
        a = np.swapaxes(left, -1, -2) if op.transpose_left else left
        b = np.swapaxes(right, -1, -2) if op.transpose_right else right
        a, b = a.reshape(-1, product.rows, product.depth), b.reshape(-1, product.depth, product.columns)
        out = np.empty((len(product.pairs), product.rows, product.columns), np.float32)
        for target, (i, j) in zip(out, product.pairs):
            target[:] = _sums(a[i], b[j], chunks_of(product.depth), *bias)
        return activate(self.machine.arithmetic, op.activation, out.reshape(op.type.shape))


class MatmulKernel(FormsKernel[Matmul]):
    """matmul of floats and of bytes."""

    ops = (Matmul,)
    kinds = (FloatMatmulKernel, IntMatmulKernel)


def chunks_of(depth: int) -> list[tuple[int, int]]:
    """Ranges of the depth that one instruction sums."""
    size = depth if depth <= _WHOLE else _CHUNK
    return [(k, min(k + size, depth)) for k in range(0, depth, size)]


def _sums(a: FloatArray, b: FloatArray, chunks: list[tuple[int, int]], bias: FloatArray | None = None) -> FloatArray:
    """a @ b + bias as the commands of the chunks compute it."""
    total = bias
    for k0, k1 in chunks:
        sums = ordered_product(np.ascontiguousarray(a[:, k0:k1].T), np.ascontiguousarray(b[k0:k1]), 2)
        total = sums if total is None else add(sums, total)
    assert total is not None
    return total


def _places(address: int, rows: int, chunks: list[tuple[int, int]]) -> list[int]:
    """Addresses of the chunks of a left operand."""
    places = []
    for k0, k1 in chunks:
        places.append(address)
        address += matrix_bytes(rows, k1 - k0)
    return places


def _load_left(
    op: Matmul,
    product: Product,
    batch: int,
    build: Build,
    rows: tuple[int, int],
    depth: tuple[int, int],
    address: int,
) -> None:
    """Rows by a range of the depth of the left operand."""
    base = product.pairs[batch][0] * product.rows * product.depth
    pitch = product.rows if op.transpose_left else product.depth
    start = depth[0] * pitch + rows[0] if op.transpose_left else rows[0] * pitch + depth[0]
    sizes = rows[1] - rows[0], depth[1] - depth[0]
    load_matrix(build, build.source(op.left) + 4 * (base + start), pitch, matrix_at(address, *sizes), op.transpose_left)


def _load_right(
    op: Matmul,
    product: Product,
    batch: int,
    build: Build,
    depth: tuple[int, int],
    columns: tuple[int, int],
    address: int,
) -> None:
    """A range of the depth by columns of the right operand; a constant one lies as (K, N) in the coefficients."""
    base = product.pairs[batch][1] * product.depth * product.columns
    transposed = op.transpose_right
    if transposed and is_constant(op.right):
        origin = build.coefficient(build.coefficients.place(op.right, "transposed", lambda w: w.swapaxes(-1, -2)))
        transposed = False
    else:
        origin = build.source(op.right)
    pitch = product.depth if transposed else product.columns
    start = columns[0] * pitch + depth[0] if transposed else depth[0] * pitch + columns[0]
    sizes = depth[1] - depth[0], columns[1] - columns[0]
    load_matrix(build, origin + 4 * (base + start), pitch, matrix_at(address, *sizes), transposed)


def _bias_buffer(bias: Value, c0: int, c1: int) -> Buffer:
    def load(build: Build, address: int) -> None:
        load_matrix(build, build.source(bias) + 4 * c0, c1 - c0, matrix_at(address, 1, c1 - c0))

    return Buffer(matrix_bytes(1, c1 - c0), "c", 4 * (c1 - c0), load, True)
