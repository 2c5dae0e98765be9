"""Running sums, largest elements, determinants: ops that look along an axis as a whole."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import FLOAT, NUMBER, Axis, TensorOp, attr, operand, tensorop
from bmcompiler.ops.shared import need_axis, plain

_CUMULATE = {"sum": (np.add, 0), "prod": (np.multiply, 1)}


@tensorop("cumulate")
class Cumulate(TensorOp):
    """out[i] = sum (or product) of x[0] to x[i] along `axis`; floats, and integers modulo 2**bits.

    method: sum, prod. `exclusive` leaves x[i] itself out; `reverse` runs from the end.

    %y = "tensorop.cumulate"(%x) {axis = 1, method = "sum"} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    x = operand(elements=NUMBER)
    method = attr(str)
    axis = attr(Axis)
    exclusive = attr(bool, False)
    reverse = attr(bool, False)
    follows_axes = True

    def infer(self) -> TensorType:
        if self.method not in _CUMULATE:
            raise self.invalid(f"unknown method '{self.method}'; known: {', '.join(_CUMULATE)}")
        need_axis(self, self.axis, self.x.type.rank)
        return plain(self.x.type)

    def evaluate(self, x: Array) -> Array:
        function, neutral = _CUMULATE[self.method]
        way = np.flip(x, self.axis) if self.reverse else x
        out = function.accumulate(way, axis=self.axis, dtype=x.dtype)
        if self.exclusive and x.shape[self.axis]:
            first = np.full_like(out.take([0], axis=self.axis), neutral)
            out = np.concatenate([first, out.take(range(x.shape[self.axis] - 1), axis=self.axis)], axis=self.axis)
        return np.ascontiguousarray(np.flip(out, self.axis)) if self.reverse else out


@tensorop("top_k")
class TopK(TensorOp):
    """The k largest (or smallest) elements along `axis` in order, and their indices (i32); of equals, the first.

    %v, %i = "tensorop.top_k"(%x) {axis = 1, k = 3} : (tensor<1x8xf32>) -> (tensor<1x3xf32>, tensor<1x3xi32>)
    """

    picks = True
    x = operand()
    k = attr(int)
    axis = attr(Axis)
    largest = attr(bool, True)
    follows_axes = True

    def infer(self) -> list[TensorType]:
        shape = self.x.shape
        axis = need_axis(self, self.axis, len(shape))
        if not 0 <= self.k <= shape[axis]:
            raise self.shape_error(f"cannot take {self.k} of the {shape[axis]} elements of axis {axis}")
        kept = self.x.type.with_shape((*shape[:axis], self.k, *shape[axis + 1 :]))
        return [kept, TensorType(kept.shape, "i32")]

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        axis, size = self.axis, x.shape[self.axis]
        if self.largest:  # a stable sort of the reversed axis, read backwards, leaves equals in their order
            order = size - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
        else:
            order = np.argsort(x, axis=axis, kind="stable")
        chosen = order.take(range(self.k), axis=axis)
        return np.take_along_axis(x, chosen, axis=axis), chosen.astype(np.int32)


@tensorop("leading")
class Leading(TensorOp):
    """1 for the k largest elements of each row (the last axis), of equals the first ones, 0 for the others.

    %y = "tensorop.leading"(%x) {k = 3} : (tensor<2x8xf32>) -> tensor<2x8xf32>
    """

    picks = True
    x = operand(elements=FLOAT)
    k = attr(int)

    def infer(self) -> TensorType:
        if not self.x.type.rank or not 0 < self.k <= self.x.shape[-1]:
            raise self.shape_error(f"cannot take {self.k} elements of rows of {list(self.x.shape)}")
        return plain(self.x.type)

    def evaluate(self, x: Array) -> Array:
        order = np.argsort(-x, axis=-1, kind="stable")
        out = np.zeros_like(x)
        np.put_along_axis(out, order[..., : self.k], 1, axis=-1)
        return out


@tensorop("det")
class Det(TensorOp):
    """Determinant of each square matrix (last two axes); float.

    %y = "tensorop.det"(%x) : (tensor<2x4x4xf32>) -> tensor<2xf32>
    """

    x = operand(elements=FLOAT)

    def infer(self) -> TensorType:
        shape = self.x.shape
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise self.shape_error(f"needs square matrices, got {list(shape)}")
        return TensorType(shape[:-2], self.x.dtype)

    def evaluate(self, x: Array) -> Array:
        return np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype)
