"""Elements picked by index: every element type stays; negative indices count from the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.errors import RuntimeUseError
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.base import Axis, TensorOp, attr, one_of, operand, tensorop
from bmcompiler.ops.shared import need_axis, need_same_dtype

INDEX = ("i32", "i64")
_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def places(indices: np.ndarray, size: int) -> np.ndarray:
    """Indices of an axis as 0 .. size-1. Raises RuntimeUseError for one outside -size .. size-1."""
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise RuntimeUseError(
            f"index {int(indices.min())} or {int(indices.max())} is outside an axis with {size} elements"
        )
    return np.where(indices < 0, indices + indices.dtype.type(size), indices)


def tuple_places(indices: np.ndarray, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Index tuples (last axis of `indices`) as one array per leading axis of `shape`."""
    return tuple(places(indices[..., i], shape[i]) for i in range(indices.shape[-1]))


@tensorop("gather")
class Gather(TensorOp):
    """out[..., i, ...] = x[..., indices[i], ...]: the axes of `indices` stand in the place of `axis`.

    %y = "tensorop.gather"(%x, %i) {axis = 1} : (tensor<1x8x4xf32>, tensor<3xi64>) -> tensor<1x3x4xf32>

    Raises RuntimeUseError at run time for an index outside -dim .. dim-1.
    """

    selects = True
    index_operands = (1,)

    x = operand()
    indices = operand(elements=INDEX)
    axis = attr(Axis, 0)

    def infer(self) -> TensorType:
        shape = self.x.shape
        axis = need_axis(self, self.axis, len(shape))
        return self.x.type.with_shape((*shape[:axis], *self.indices.shape, *shape[axis + 1 :]))

    def evaluate(self, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return np.take(x, places(indices, x.shape[self.axis]), axis=self.axis)


def _same_rank(op: TensorOp, x: Value, indices: Value, axis: int) -> None:
    """Indices of the rank of x, not longer along other axes than `axis`."""
    need_axis(op, axis, x.type.rank)
    longer = [i for i, (d, size) in enumerate(zip(indices.shape, x.shape)) if i != axis and d > size]
    if indices.type.rank != x.type.rank or longer:
        raise op.shape_error(f"indices {list(indices.shape)} do not fit {list(x.shape)} along axis {axis}")


def along(indices: np.ndarray, axis: int, size: int) -> tuple[Any, ...]:
    """Index arrays, one per axis, for elements that differ from their own place along `axis` only."""
    own = np.ogrid[tuple(slice(d) for d in indices.shape)]
    return tuple(places(indices, size) if i == axis else own[i] for i in range(indices.ndim))


@tensorop("gather_elements")
class GatherElements(TensorOp):
    """out[i, j, k] = x[i, indices[i, j, k], k] for axis = 1, any rank; the result has the shape of `indices`.

    %y = "tensorop.gather_elements"(%x, %i) {axis = 1} : (tensor<2x8xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>

    Raises RuntimeUseError at run time for an index outside -dim .. dim-1.
    """

    selects = True
    index_operands = (1,)

    x = operand()
    indices = operand(elements=INDEX)
    axis = attr(Axis, 0)

    def infer(self) -> TensorType:
        _same_rank(self, self.x, self.indices, self.axis)
        return self.x.type.with_shape(self.indices.shape)

    def evaluate(self, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return x[along(indices, self.axis, x.shape[self.axis])]


@tensorop("gather_nd")
class GatherNd(TensorOp):
    """out[i...] = x[indices[i..., 0], indices[i..., 1], ...]: the last axis of `indices` holds index tuples.

    The first `batch_dims` axes of both operands run side by side and are not indexed.

    %y = "tensorop.gather_nd"(%x, %i) {batch_dims = 1} : (tensor<2x8x4xf32>, tensor<2x3x1xi64>) -> tensor<2x3x4xf32>

    Raises RuntimeUseError at run time for an index outside -dim .. dim-1.
    """

    selects = True
    index_operands = (1,)

    x = operand()
    indices = operand(elements=INDEX)
    batch_dims = attr(int, 0)

    def infer(self) -> TensorType:
        x, indices, batch = self.x.shape, self.indices.shape, self.batch_dims
        if not 0 <= batch < max(len(indices), 1) or not indices or x[:batch] != indices[:batch]:
            raise self.shape_error(f"{batch} batch axes do not fit {list(x)} and {list(indices)}")
        if not 1 <= indices[-1] <= len(x) - batch:
            raise self.shape_error(f"index tuples of {indices[-1]} do not fit {list(x)}")
        return self.x.type.with_shape((*indices[:-1], *x[batch + indices[-1] :]))

    def evaluate(self, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        batch = self.batch_dims
        own = np.ogrid[tuple(slice(d) for d in indices.shape[:-1])][:batch] if batch else ()
        where = (*own, *tuple_places(indices, x.shape[batch:]))
        return x[where]


@tensorop("one_hot")
class OneHot(TensorOp):
    """A new axis of `depth` elements before `axis`: values[1] at the index, values[0] elsewhere.

    An index outside -depth .. depth-1 gives values[0] everywhere.

    %y = "tensorop.one_hot"(%i, %v) {axis = 1, depth = 10} : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x10xf32>
    """

    picks = True
    indices = operand(elements=INDEX)
    values = operand(1)
    depth = attr(int)
    axis = attr(Axis)

    def infer(self) -> TensorType:
        shape = self.indices.shape
        axis = need_axis(self, self.axis, len(shape) + 1)
        if self.values.shape != (2,) or self.depth < 1:
            raise self.shape_error(
                f"needs two values and a positive depth, got {list(self.values.shape)}, {self.depth}"
            )
        return TensorType((*shape[:axis], self.depth, *shape[axis:]), self.values.dtype)

    def evaluate(self, indices: np.ndarray, values: np.ndarray) -> np.ndarray:
        wrapped = np.where(indices < 0, indices + indices.dtype.type(self.depth), indices)
        steps = np.arange(self.depth).reshape([-1 if i == self.axis else 1 for i in range(indices.ndim + 1)])
        return np.where(np.expand_dims(wrapped, self.axis) == steps, values[1], values[0])


@tensorop("reverse_sequence")
class ReverseSequence(TensorOp):
    """For each b, the first lengths[b] elements along `time_axis` in reverse order, b counting along `batch_axis`.

    %y = "tensorop.reverse_sequence"(%x, %n) {batch_axis = 1, time_axis = 0} : (tensor<4x2xf32>, tensor<2xi64>) ->
         tensor<4x2xf32>

    Raises RuntimeUseError at run time for a length beyond the time axis.
    """

    index_operands = (1,)
    x = operand()
    lengths = operand(1, INDEX)
    batch_axis = attr(int, 1)
    time_axis = attr(int, 0)

    def infer(self) -> TensorType:
        shape = self.x.shape
        batch, time = (need_axis(self, axis, len(shape)) for axis in (self.batch_axis, self.time_axis))
        if batch == time or self.lengths.shape != (shape[batch],):
            raise self.shape_error(f"lengths {list(self.lengths.shape)} do not fit {list(shape)} along axis {batch}")
        return self.operands[0].type

    def evaluate(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        size = x.shape[self.time_axis]
        if lengths.size and (lengths.min() < 0 or lengths.max() > size):
            raise RuntimeUseError(f"a length is outside 0 to {size}")
        lasts = lengths.reshape([-1 if i == self.batch_axis else 1 for i in range(x.ndim)])
        times = np.arange(size).reshape([-1 if i == self.time_axis else 1 for i in range(x.ndim)])
        return np.take_along_axis(x, np.where(times < lasts, lasts - 1 - times, times), axis=self.time_axis)


@tensorop("trilu")
class Trilu(TensorOp):
    """The triangle of each matrix (last two axes) on one side of diagonal k, which belongs to it; 0 elsewhere.

    %y = "tensorop.trilu"(%x) {k = 1, upper = false} : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
    """

    x = operand()
    upper = attr(bool, True)
    k = attr(int, 0)

    def infer(self) -> TensorType:
        if self.x.type.rank < 2:
            raise self.shape_error(f"needs 2 axes or more, got {list(self.x.shape)}")
        return self.operands[0].type

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.triu(x, self.k) if self.upper else np.tril(x, self.k)


class _Scatter(TensorOp):
    """Operands and reductions of the scatter ops."""

    index_operands = (1,)
    x = operand()
    indices = operand(elements=INDEX)
    updates = operand()
    reduction = attr(one_of("none", *_REDUCTIONS), "none")

    def put(self, out: np.ndarray, where: tuple[Any, ...], updates: np.ndarray) -> np.ndarray:
        """`updates` into the copy `out`; every occurrence of an index counts."""
        if self.reduction == "none":
            out[where] = updates
        else:
            _REDUCTIONS[self.reduction].at(out, where, updates)
        return out

    def check(self) -> None:
        need_same_dtype(self, [self.x, self.updates])


@tensorop("scatter_elements")
class ScatterElements(_Scatter):
    """x with x[i, indices[i, j], ...] replaced by updates[i, j, ...] for axis = 1, any rank.

    reduction: none (one of the updates of an element stays), add, mul, max, min (combined with the element).

    %y = "tensorop.scatter_elements"(%x, %i, %u) {axis = 1} : (tensor<2x8xf32>, tensor<2x3xi64>, tensor<2x3xf32>) ->
         tensor<2x8xf32>

    Raises RuntimeUseError at run time for an index outside -dim .. dim-1.
    """

    axis = attr(Axis, 0)

    def infer(self) -> TensorType:
        _same_rank(self, self.x, self.indices, self.axis)
        if self.updates.shape != self.indices.shape:
            raise self.shape_error(f"indices {list(self.indices.shape)} and updates {list(self.updates.shape)} differ")
        return self.operands[0].type

    def evaluate(self, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        return self.put(x.copy(), along(indices, self.axis, x.shape[self.axis]), updates)


@tensorop("scatter_nd")
class ScatterNd(_Scatter):
    """x with x[indices[i..., 0], indices[i..., 1], ...] replaced by updates[i...].

    reduction: none (one of the updates of an element stays), add, mul, max, min (combined with the element).

    %y = "tensorop.scatter_nd"(%x, %i, %u) {reduction = "add"} : (tensor<8x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) ->
         tensor<8x4xf32>

    Raises RuntimeUseError at run time for an index outside -dim .. dim-1.
    """

    def infer(self) -> TensorType:
        x, indices = self.x.shape, self.indices.shape
        if not indices or not 1 <= indices[-1] <= len(x):
            raise self.shape_error(f"index tuples of {list(indices)} do not fit {list(x)}")
        if self.updates.shape != (*indices[:-1], *x[indices[-1] :]):
            raise self.shape_error(f"updates {list(self.updates.shape)} do not fit indices {list(indices)}")
        return self.operands[0].type

    def evaluate(self, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        return self.put(x.copy(), tuple_places(indices, x.shape), updates)
