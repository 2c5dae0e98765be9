"""Comparison, choice, and bits of integers of every width."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmcompiler.ir import TensorType
from bmcompiler.numeric import arith
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import INTEGER, TensorOp, attr, one_of, operand, tensorop
from bmcompiler.ops.elements.elementwise import Binary
from bmcompiler.ops.shared import (
    ARITHMETIC,
    MAX_SHIFT,
    broadcast_shape,
    holding,
    largest,
    need_dtype,
    need_same_dtype,
    plain,
)

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "equal": np.equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


@tensorop("compare")
class Compare(Binary):
    """out = whether a and b stand in this relation, broadcasting; one element type, bool result.

    method: equal, less, less_equal, greater, greater_equal. NaN is equal to nothing and not ordered.

    %y = "tensorop.compare"(%a, %b) {method = "less"} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xi1>
    """

    method = attr(str)
    one_type = True

    def infer(self) -> TensorType:
        if self.method not in _COMPARE:
            raise self.invalid(f"unknown method '{self.method}'; known: {', '.join(_COMPARE)}")
        return TensorType(broadcast_shape(self, self.a.shape, self.b.shape), "bool")

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return _COMPARE[self.method](a, b)


@tensorop("where")
class Where(TensorOp):
    """out = a where the condition holds, b elsewhere, all three broadcasting; a and b of one element type.

    %y = "tensorop.where"(%c, %a, %b) : (tensor<1x8xi1>, tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
    """

    condition = operand(elements=("bool",))
    a = operand()
    b = operand()
    broadcasts = True
    masks = True

    def infer(self) -> TensorType:
        quant = self.a.type.quant if self.a.type.quant == self.b.type.quant else None
        shape = broadcast_shape(self, *(v.shape for v in self.operands))
        return TensorType(shape, self.a.dtype, quant)

    def evaluate(self, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(condition, a, b)

    def check(self) -> None:
        need_same_dtype(self, self.operands[1:])


@tensorop("bit_not")
class BitNot(TensorOp):
    """out = x with every bit inverted; integers, or bool (logical not).

    %y = "tensorop.bit_not"(%x) : (tensor<1x8xi8>) -> tensor<1x8xi8>
    """

    pointwise = True
    x = operand(elements=(*INTEGER, "bool"))

    def infer(self) -> TensorType:
        return plain(self.x.type)

    def evaluate(self, x: np.ndarray) -> np.ndarray:
        return np.invert(x)


@tensorop("bit_shift")
class BitShift(Binary):
    """out = the bits of a moved by b places, broadcasting; one integer type. direction: left or right.

    Bits that leave the element are lost; zeros come in, from the left of a signed element its sign. b counts as
    unsigned; from the width of the element on all bits are gone.

    %y = "tensorop.bit_shift"(%a, %b) {direction = "left"} : (tensor<1x8xui8>, tensor<1x8xui8>) -> tensor<1x8xui8>
    """

    a = operand(elements=INTEGER)
    direction = attr(one_of("left", "right"))
    one_type = True

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        width = 8 * a.dtype.itemsize
        far = (b < 0) | (b >= width)
        if self.direction == "left":
            return np.where(far, a.dtype.type(0), np.left_shift(a, np.where(far, a.dtype.type(0), b)))
        return np.right_shift(a, np.where(far, a.dtype.type(width - 1), b)) >> far.astype(a.dtype)


@tensorop("round_rshift_by")
class RoundRshiftBy(TensorOp):
    """out = saturate(round_shift(x, n)) with a count per element, n = places, or 0 where places < 0 (bmlang.md 4.4).

    %y = "tensorop.round_rshift_by"(%x, %n) : (tensor<1x8xi16>, tensor<1x8xi16>) -> tensor<1x8xi8>

    `places` broadcasts to x and is of a signed integer type. Counts from 31 on are 31.
    """

    x = operand(elements=ARITHMETIC)
    places = operand(elements=("i8", "i16", "i32"))
    free_dtype = True

    def infer(self) -> TensorType:
        if broadcast_shape(self, self.x.shape, self.places.shape) != self.x.shape:
            raise self.shape_error(f"places {list(self.places.shape)} do not broadcast to {list(self.x.shape)}")
        return plain(self.x.type)

    def evaluate(self, x: np.ndarray, places: np.ndarray) -> np.ndarray:
        wide = x.astype(holding(largest(x)))
        return arith.requantize(wide, np.clip(places, 0, MAX_SHIFT), self.type.dtype)

    def check(self) -> None:
        need_dtype(self, "the result", self.result, ARITHMETIC)


@tensorop("arith_shift")
class ArithShift(TensorOp):
    """out = x moved by `places` bits in a direction, the other way where places < 0 (bmlang.md 2, `ash`).

    To the left bits are lost (modulo 2**bits), to the right the result is rounded down; places of any size.

    %y = "tensorop.arith_shift"(%x, %n) {direction = "right"} : (tensor<1x8xi16>, tensor<1x1xi16>) -> tensor<1x8xi16>

    direction: left or right. `places` broadcasts to x and is of an integer type of its own.
    """

    x = operand(elements=ARITHMETIC)
    places = operand(elements=ARITHMETIC)
    direction = attr(one_of("left", "right"))

    def infer(self) -> TensorType:
        if broadcast_shape(self, self.x.shape, self.places.shape) != self.x.shape:
            raise self.shape_error(f"places {list(self.places.shape)} do not broadcast to {list(self.x.shape)}")
        return plain(self.x.type)

    def evaluate(self, x: np.ndarray, places: np.ndarray) -> np.ndarray:
        left = places.astype(np.int64) if self.direction == "left" else -places.astype(np.int64)
        wide = x.astype(np.int64)
        down = wide >> np.clip(-left, 0, 63)
        up = np.where(left < 64, wide << np.clip(left, 0, 63), 0)
        return np.where(left < 0, down, up).astype(x.dtype)
