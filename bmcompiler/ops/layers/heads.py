"""Products with what a cache holds, as it lies: the heads of a token side by side."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp, attr, operand, tensorop
from bmcompiler.ops.shared import widened

_FLOATS = ("f32", "f16", "bf16")


@tensorop("head_matmul")
class HeadMatmul(TensorOp):
    """Products by heads whose rows lie apart: out[a, b, i, j] = sum_k left[a, b, i, k] * right[0, k, g, j].

    Matrix h = a * B + b of the A * B of `left` is multiplied by head g = h // (A * B / G) of the G of `right`, so that
    queries share keys. transpose_right: right[0, j, g, k], rows of keys.

    %y = "tensorop.head_matmul"(%q, %k) {transpose_right = true}
         : (tensor<2x6x16x128xf16>, tensor<1x48x2x128xf16>) -> tensor<2x6x16x48xf16>

    left: (A, B, M, K), right: (1, K, G, N), transposed (1, N, G, K), floats; out: (A, B, M, N). The sums are those of
    `matmul` of `left` and a permute of `right`.
    """

    left = operand(4, elements=_FLOATS)
    right = operand(4, elements=_FLOATS)
    transpose_right = attr(bool, False)
    affine = True

    def infer(self) -> TensorType:
        outer, left, (one, tokens, heads, width) = self.left.shape[:2], self.left.shape[2:], self.right.shape
        depth, columns = (width, tokens) if self.transpose_right else (tokens, width)
        if one != 1 or left[1] != depth:
            wanted = f"(1, columns, heads, {left[1]})" if self.transpose_right else f"(1, {left[1]}, heads, columns)"
            raise self.shape_error(f"the right operand must have shape {wanted}, got {list(self.right.shape)}")
        if outer[0] * outer[1] % heads:
            raise self.shape_error(f"{outer[0] * outer[1]} matrices cannot share {heads} heads evenly")
        return TensorType((*outer, left[0], columns), self.left.dtype)

    def matrices(self, left: Array, right: Array) -> tuple[Array, Array]:
        """Operands as (heads, matrices of each, rows, depth) and (heads, 1, depth, columns)."""
        by_head = right[0].transpose((1, 2, 0) if self.transpose_right else (1, 0, 2))[:, None]
        return left.reshape(len(by_head), -1, *left.shape[2:]), by_head

    def evaluate(self, left: Array, right: Array) -> Array:
        a, b = widened(*self.matrices(left, right))
        return np.matmul(a, b).astype(left.dtype, copy=False).reshape(self.type.shape)

    def products(self) -> int:
        return self.type.size * self.left.shape[-1]
