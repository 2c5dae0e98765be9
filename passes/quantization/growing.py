"""The new function as it grows: ops, and weights of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from bmcompiler.ir import Function, Module, Quant, TensorType, Value, type_of_array
from bmcompiler.ir.keys import INPUT_THRESHOLDS
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops import find_op
from bmcompiler.ops.core import Weight
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.formats import F, Formats
from bmcompiler.passes.rewriting import producer
from bmcompiler.target import Target, unsupported_reason


class Growing(Formats[F]):
    """A function with the inputs' names of another, at first without ops, in a module that nothing else is in."""

    def __init__(self, function: Function, target: Target | None) -> None:
        self.target = target
        self.module = Module()
        self.new = Function(function.name, (), function.input_names, function.attributes)
        self.new.attributes.pop(INPUT_THRESHOLDS, None)
        self.module.functions = [self.new]
        self.location: tuple[str, ...] = ()

    def emit(
        self,
        name: str,
        operands: Sequence[Value],
        attributes: Mapping[str, Any] | None = None,
        wanted: F | None = None,
        shape: Sequence[int] | None = None,
    ) -> Value:
        """The first result of `emit_all`."""
        return self.emit_all(name, operands, attributes, wanted, shape)[0]

    def emit_all(
        self,
        name: str,
        operands: Sequence[Value],
        attributes: Mapping[str, Any] | None = None,
        wanted: F | None = None,
        shape: Sequence[int] | None = None,
    ) -> list[Value]:
        """Append an op whose results are integers as `wanted`, or of the type that the op infers.

        Raises NoInt8Form with the target's reason when it does not run this op.
        """
        op = find_op(name)(operands, attributes, None, self.location)
        if wanted is not None:
            for result in op.results:
                result.type = self.type_of(result.shape if shape is None else tuple(shape), wanted)
        reason = unsupported_reason(self.target, op) if self.target is not None else None
        if reason is not None:
            op.erase()
            raise NoInt8Form(reason)
        self.new.body.append(op)
        return op.results

    def as_maps(self, x: Value, axis: int) -> Value:
        """`x` as (N, C, H, W) with `axis` as C: what the chip needs to tell channels apart."""
        shape = x.shape
        if len(shape) == 4 and axis == 1:
            return x
        return self.emit("reshape", [x], {"shape": (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]), 1)})

    def as_before(self, x: Value, shape: tuple[int, ...]) -> Value:
        """The way back from `as_maps`."""
        return x if x.shape == shape else self.emit("reshape", [x], {"shape": shape})

    def weight(self, array: Array, like: Value | None, scale: float | Quant | None = None) -> Value:
        """A constant; it takes the name of the old weight `like`. scale: of the tensor, or what integers mean."""
        op = producer(like, Weight)
        name = op.key if op is not None else ".".join(("+".join(self.location), "table"))
        key = self.module.weights.add(name, np.ascontiguousarray(array))
        quant = Quant(scale) if isinstance(scale, float) else scale
        return self._append("weight", [], _type(array, quant), {"key": key})

    def all_weights(self, *wanted: tuple[Array | None, Value | None, float | Quant | None]) -> list[Value]:
        """`weight` of each (array, like, scale) that has an array."""
        return [self.weight(array, like, scale) for array, like, scale in wanted if array is not None]

    def constant_in(self, integers: Array, like: Value | None, wanted: F) -> Value:
        """A constant of integers that are in a format already."""
        value = self.weight(integers, like)
        value.type = self.type_of(value.shape, wanted)
        return value

    def _append(
        self, name: str, operands: list[Value], type: TensorType, attributes: Mapping[str, Any] | None = None
    ) -> Value:
        return self.new.body.append(find_op(name)(operands, attributes, [type], self.location)).result


def _type(array: Array, quant: Quant | None) -> TensorType:
    plain = type_of_array(array)
    return TensorType(plain.shape, plain.dtype, quant)
