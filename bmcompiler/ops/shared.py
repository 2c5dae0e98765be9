"""What several op families share: element types of the float and integer forms, broadcasting, axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bmcompiler.ir import TensorType, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp, attr

BYTES = ("i8", "u8")
NARROW = ("i8", "u8", "i16", "u16")
ARITHMETIC = ("i8", "u8", "i16", "u16", "i32")
"""Element types of integer arithmetic: products and sums of two of them are exact in int64."""
MAX_SHIFT = 31
ACTIVATIONS = {"": (-math.inf, math.inf), "relu": (0.0, math.inf), "relu6": (0.0, 6.0)}
"""What may act on a result inside of an op: name -> bounds of what comes out."""


class Activated(TensorOp):
    """Base of ops that do something to their result before it leaves.

    Attributes:
        activation: "" for nothing, "relu" for max(x, 0), "relu6" for min(max(x, 0), 6) (floats only).
    """

    activation = attr(str, "")

    def result_bounds(self) -> tuple[float, float]:
        return ACTIVATIONS[self.activation]


def plain(type: TensorType) -> TensorType:
    """The type without its quantization."""
    return TensorType(type.shape, type.dtype)


def need_dtype(op: TensorOp, what: str, value: Value, allowed: Iterable[str]) -> None:
    """Raise VerifyError unless the element type of `value` is one of `allowed`."""
    names = tuple(allowed)
    if value.dtype not in names:
        raise op.invalid(f"{what} must be {' or '.join(names)}, got {value.dtype}")


def need_float(op: TensorOp, what: str, value: Value) -> None:
    """Raise VerifyError unless a value is of a float type."""
    if not value.type.is_float:
        raise op.invalid(f"{what} must be of a float type, got {value.dtype}")


def need_number(op: TensorOp, what: str, value: Value) -> None:
    """Raise VerifyError for bool."""
    if value.dtype == "bool":
        raise op.invalid(f"{what} must be numbers, got bool")


def need_same_dtype(op: TensorOp, values: Sequence[Value]) -> None:
    """Raise VerifyError unless all values have one element type."""
    found = list(dict.fromkeys(value.dtype for value in values))
    if len(found) > 1:
        raise op.invalid(f"operands and results must have one element type, got {', '.join(found)}")


def need_shift(op: TensorOp, shift: int) -> None:
    """Raise VerifyError unless 0 <= shift <= MAX_SHIFT."""
    if not 0 <= shift <= MAX_SHIFT:
        raise op.invalid(f"a right shift must be 0 to {MAX_SHIFT}, got {shift}")


def check_products(op: TensorOp, rshift: int) -> None:
    """Element types of sums of products (data, weight, optional bias), as conv, matmul and scale have them.

    Float form: one float type throughout, no rshift. Integer form (bm1880.md 8.2): i8 or u8 data and weight, i16 or
    i32 bias, any result of `ARITHMETIC`.
    """
    if op.operands[0].type.is_float:
        need_same_dtype(op, [*op.operands, op.result])
        if rshift:
            raise op.invalid("rshift belongs to the integer form, the operands are floats")
        return
    need_dtype(op, "data", op.operands[0], BYTES)
    need_dtype(op, "weight", op.operands[1], BYTES)
    if len(op.operands) > 2:
        need_dtype(op, "bias", op.operands[2], ("i16", "i32"))
    need_dtype(op, "the result", op.result, ARITHMETIC)
    need_shift(op, rshift)


def need_activation(op: Activated) -> None:
    """Raise VerifyError unless the attribute `activation` is one of `ACTIVATIONS` and fits the result."""
    if op.activation not in ACTIVATIONS:
        known = ", ".join(repr(name) for name in ACTIVATIONS)
        raise op.invalid(f"activation must be one of {known}, got {op.activation!r}")
    if op.activation == "relu6" and not op.results[0].type.is_float:
        raise op.invalid(f"activation relu6 belongs to the float form, the result is {op.results[0].dtype}")


def activated(op: Activated, out: np.ndarray) -> np.ndarray:
    """The result `out` of an op after its attribute `activation`; the formulas are those of relu and clip.

    `out` is a new array, which may be changed.
    """
    if not op.activation:
        return out
    positive = np.maximum(out, out.dtype.type(0), out=out if isinstance(out, np.ndarray) else None)
    return np.minimum(positive, out.dtype.type(6)) if op.activation == "relu6" else positive


def broadcast_shape(op: TensorOp, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Numpy broadcasting. Raises ShapeError naming the op."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        texts = " and ".join(str(list(shape)) for shape in shapes)
        raise op.shape_error(f"shapes {texts} do not broadcast") from None


def need_axis(op: TensorOp, axis: int, rank: int) -> int:
    """`axis` itself, when it is one of 0 .. rank-1. Raises ShapeError."""
    if not 0 <= axis < rank:
        raise op.shape_error(f"axis {axis} does not exist in a tensor of {rank} axes")
    return axis


def need_length(op: TensorOp, name: str, items: Sequence[object], rank: int) -> None:
    """Raise ShapeError unless a list has one entry per axis."""
    if len(items) != rank:
        raise op.shape_error(f"{name} needs one entry per axis: {rank}, got {len(items)}")


def along_axis(vector: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A vector shaped to broadcast along one axis of a tensor of `rank` axes."""
    return vector.reshape([-1 if i == axis else 1 for i in range(rank)])


def largest(x: np.ndarray) -> int:
    """Largest magnitude that the element type of an integer array holds."""
    limits = np.iinfo(x.dtype)
    return max(-int(limits.min), int(limits.max))


def holding(magnitude: int) -> Any:
    """Element type for exact intermediates up to `magnitude`: int32 where it is enough, as it is half the traffic.

    int64 holds every product of two numbers of 32 bits.
    """
    return np.int32 if magnitude < 1 << 31 else np.int64


def widened(*arrays: Array | None) -> tuple[Any, ...]:
    """float16 arrays as float32, so that sums are not rounded at each step; others as they are."""
    return tuple(a.astype(np.float32) if a is not None and a.dtype == np.float16 else a for a in arrays)
