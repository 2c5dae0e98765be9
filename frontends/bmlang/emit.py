"""Where the TensorOps of an operator go: they are evaluated at once, or recorded in a function.

What an operator means is written once, over an `Emit`. So what is computed eagerly is what the recorded IR says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from bmcompiler.frontends.bmlang.fields import need_size
from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir import Block, TensorType, Value, type_of_array
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops import find_op
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.core import Weight

_AXES_BETWEEN = 12
"""Axes of what operators make on the way: blocks take apart up to two of them."""


class NotConstantError(Exception):
    """Raised where a recorded operator needs the numbers of a tensor that are known at run time only."""


class Emit(ABC):
    """Takes TensorOps. `label` names them in messages and reports."""

    def __init__(self, label: str) -> None:
        self.label = label

    def op(self, name: str, *operands: Value, result: str | None = None, **attributes: Any) -> Value:
        """The result of `tensorop.NAME`; `result` is its element type where it can be chosen."""
        return self.results(name, *operands, result=result, **attributes)[0]

    def results(self, name: str, *operands: Value, result: str | None = None, **attributes: Any) -> list[Value]:
        """All results of an op."""
        made = find_op(name)(operands, attributes, None, (self.label,))
        if result is not None:
            made.result.type = TensorType(made.result.shape, result)
        made.check_all()
        for value in made.results:
            need_size(value.shape, _AXES_BETWEEN)
        return self.take(made)

    @abstractmethod
    def take(self, op: TensorOp) -> list[Value]:
        """Evaluate or record an op; its results."""

    @abstractmethod
    def const(self, array: Array) -> Value:
        """A constant that holds `array`."""

    @abstractmethod
    def known(self, value: Value) -> Array | None:
        """The numbers of a value, None where they are not known yet."""

    def numbers(self, value: Value, what: str) -> tuple[int, ...]:
        """The integers of a one-dimensional value. Raises NotConstantError, naming `what`."""
        array = self.known(value)
        if array is None:
            raise NotConstantError(
                f"'{self.label}' takes its {what} from a tensor that is computed at run time; "
                "a compiled program needs a constant there (constdata, or COEFF_TENSOR)"
            )
        return tuple(int(x) for x in array.ravel())

    # -- what many operators need --------------------------------------------------------------------------------------
    def cast(self, value: Value, dtype: str) -> Value:
        """The value saturated and rounded to an element type, or itself."""
        return value if value.dtype == dtype else self.op("cast", value, dtype=dtype)

    def full(self, number: float, dtype: str, like: Value) -> Value:
        """A constant of one element with as many axes as `like`."""
        return self.const(np.full((1,) * like.type.rank, number, TensorType((), dtype).numpy))

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The elements in another shape."""
        return self.op("reshape", value, shape=tuple(shape))


class Eager(Emit):
    """Evaluates every op at once."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self._arrays: dict[Value, Array] = {}

    def take(self, op: TensorOp) -> list[Value]:
        for value, array in zip(op.results, evaluate_op(op, [self._arrays[v] for v in op.operands])):
            self._arrays[value] = array
        return op.results

    def const(self, array: Array) -> Value:
        (value,) = Block([type_of_array(array)]).arguments
        self._arrays[value] = array
        return value

    def known(self, value: Value) -> Array:
        return self._arrays[value]


class Trace(Emit):
    """Records every op in the function of a builder; `single` has its constants of one element."""

    def __init__(self, label: str, builder: Builder, single: dict[tuple[str, bytes, int], Value] | None = None) -> None:
        super().__init__(label)
        self._builder = builder
        self._single = {} if single is None else single

    def take(self, op: TensorOp) -> list[Value]:
        self._builder.append(op)
        return op.results

    def const(self, array: Array) -> Value:
        if array.size != 1:
            return self._builder.weight(array, self.label)
        key = (array.dtype.name, array.tobytes(), array.ndim)
        if key not in self._single:
            self._single[key] = self._builder.weight(array, "number")
        return self._single[key]

    def known(self, value: Value) -> Array | None:
        op = value.op
        if not isinstance(op, TensorOp):
            return None
        if isinstance(op, Weight):
            array: Array = self._builder.module.weights[op.key]
            return array
        arrays = [self.known(operand) for operand in op.operands]
        if not arrays or any(array is None for array in arrays):
            return None
        return evaluate_op(op, [array for array in arrays if array is not None])[value.index]
