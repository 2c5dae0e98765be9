"""What a matmul multiplies: sizes, and which matrix of each operand belongs to which of the result."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from bmcompiler.ops.nn import Matmul

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
