"""What a matmul multiplies, which matrix of each operand belongs to which of the result, and kernels of floats."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from bmcompiler.backends.lanes.arithmetic import Arithmetic
from bmcompiler.backends.lanes.kernels.base import LocalKernel, is_activation, is_constant
from bmcompiler.backends.lanes.kernels.functions.fused_activation import activate
from bmcompiler.ir.keys import IMAGE_ROWS
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.target import rule

MOST_PRODUCTS = 256
"""Commands of one tile that makes all products of an op."""


@dataclass(frozen=True)
class Product:
    """Sizes of a matmul: `pairs` (left matrix, right matrix) products of (rows, depth) by (depth, columns)."""

    pairs: tuple[tuple[int, int], ...]
    rows: int
    depth: int
    columns: int


def product_of(op: Matmul) -> Product:
    """The products of a matmul; where one right matrix serves all, all rows make one left matrix."""
    left, right, result = op.left.shape, op.right.shape, op.type.shape
    rows, columns = result[-2:]
    depth = left[-2] if op.transpose_left else left[-1]
    if prod(right[:-2]) == 1 and not op.transpose_left:
        return Product(((0, 0),), prod(result[:-2]) * rows, depth, columns)
    indices = [np.broadcast_to(np.arange(prod(s)).reshape(s), result[:-2]).ravel() for s in (left[:-2], right[:-2])]
    return Product(tuple(zip(*(part.tolist() for part in indices))), rows, depth, columns)


def product_of_images(op: Matmul) -> Product:
    """The same, with as many rows of a left matrix as are noted (`IMAGE_ROWS`): what one tile makes of all products."""
    product, each = product_of(op), op.attributes.get(IMAGE_ROWS)
    if each is None or len(product.pairs) > 1:
        return product
    return Product(tuple((image, 0) for image in range(product.rows // each)), each, product.depth, product.columns)


class FloatProductKernel(LocalKernel[Matmul]):
    """Base: matmul of floats, one pair of matrices after the other."""

    ops = (Matmul,)
    grid_of_result = False

    @rule("An operand must be an activation")
    def some_activation(self, op: Matmul) -> bool:
        return is_activation(op.left) or is_activation(op.right)

    @rule("The bias must be a constant")
    def constant_bias(self, op: Matmul) -> bool:
        return is_constant(op.bias)

    def sums(self, arithmetic: Arithmetic, left: Array, right: Array, bias: Array | None) -> Array:
        """left @ right (+ bias) of two matrices, in the order of the commands: by default there is one."""
        return arithmetic.product(left, right, bias)

    def evaluate(self, op: Matmul, *arrays: Array) -> Array:
        left, right, *bias = arrays
        product, arithmetic = product_of(op), self.machine.arithmetic_of(op.left.dtype)
        a = np.swapaxes(left, -1, -2) if op.transpose_left else left
        b = np.swapaxes(right, -1, -2) if op.transpose_right else right
        a, b = a.reshape(-1, product.rows, product.depth), b.reshape(-1, product.depth, product.columns)
        out = np.empty((len(product.pairs), product.rows, product.columns), left.dtype)
        for target, (i, j) in zip(out, product.pairs):
            target[:] = self.sums(arithmetic, a[i], b[j], bias[0] if bias else None)
        return activate(arithmetic, op.activation, out.reshape(op.type.shape))
