"""The new function being built: which float value has which int8 counterpart, and what lies between the two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bmcompiler import arith
from bmcompiler.ir import Block, Function, Module, Operation, Quant, TensorType, Value, type_of_array
from bmcompiler.ops import find_op
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.quantize_rules.base import NoInt8Form, is_constant
from bmcompiler.passes.quantize_rules.formulas import constant_threshold, rescaling
from bmcompiler.passes.quantize_rules.plan import Plan
from bmcompiler.passes.rewriting import TENSOR_NAME, rebuild
from bmcompiler.target import Target, unsupported_reason

PLACE_CPU = "place.cpu"
"""On an op that stays in float: why it runs on the host CPU."""
_NOTES = ("calib.threshold", "calib.source")
_SAME = 1e-9
_Key = TypeVar("_Key")
Mark = tuple[int, int, int, int, int]


class Lowering:
    """Builds the int8 version of `function` beside it, op by op. Weights go into a module of its own."""

    def __init__(self, module: Module, function: Function, plan: Plan, target: Target | None) -> None:
        self.source, self.plan, self.target = module, plan, target
        self.module = Module()
        self.new = Function(function.name, (), function.input_names, function.attributes)
        self.new.attributes.pop("input_thresholds", None)
        self.module.functions = [self.new]
        self.reals: dict[Value, Value] = {}
        self.ints: dict[Value, Value] = {}
        self.others: dict[tuple[Value, float], Value] = {}
        self.constants: dict[Value, Value] = {}
        self.location: tuple[str, ...] = ()
        self.reports: dict[Operation, str] = {}
        for argument in function.arguments:
            if argument.dtype == "f32":
                self.ints[argument] = self.new.body.add_argument(i8(argument.shape, plan.thresholds[argument]))
            else:
                self.reals[argument] = self.new.body.add_argument(argument.type)

    # -- what rules use -------------------------------------------------------------------------------------------
    def wanted(self, value: Value) -> float:
        """The threshold that the plan wants for a result of the old function."""
        return self.plan.thresholds[value]

    def constant(self, value: Value | None) -> NDArray[Any] | None:
        """The array behind a weight of the old function, None for anything else."""
        if value is None or not is_constant(value):
            return None
        return self.source.weights[cast(TensorOp, value.op).key]

    def need_constant(self, value: Value, what: str) -> NDArray[Any]:
        """The array behind a weight. Raises NoInt8Form for a computed tensor."""
        array = self.constant(value)
        if array is None:
            raise NoInt8Form(f"its {what} is computed at run time")
        return array

    def request(self, value: Value, threshold: float | None = None) -> Value:
        """The i8 counterpart of an old float value, at `threshold` or else at the one it has.

        Another threshold costs one muls_shift, a value that exists only in float one quantize; each is made once.
        Raises NoInt8Form for values that are not f32.
        """
        if value.dtype != "f32":
            raise NoInt8Form(f"it reads {value.dtype}, which has no int8 form")
        have = self.ints.get(value)
        if have is not None and (threshold is None or same(threshold_of(have), threshold)):
            return have
        wanted = self._default(value) if threshold is None else threshold
        key = (value, wanted)
        if key not in self.others:
            self.others[key] = self._convert(value, have, wanted)
        return self.others[key]

    def emit(
        self,
        name: str,
        operands: Sequence[Value],
        attributes: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        shape: Sequence[int] | None = None,
    ) -> Value:
        """The first result of `emit_all`."""
        return self.emit_all(name, operands, attributes, threshold, shape)[0]

    def emit_all(
        self,
        name: str,
        operands: Sequence[Value],
        attributes: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        shape: Sequence[int] | None = None,
    ) -> list[Value]:
        """Append an op whose results are i8 at `threshold`, or of the type that the op infers.

        Raises NoInt8Form with the target's reason when it does not run this op.
        """
        op = find_op(name)(operands, attributes, None, self.location)
        if threshold is not None:
            for result in op.results:
                result.type = i8(result.shape if shape is None else tuple(shape), threshold)
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

    def weight(self, array: NDArray[Any], like: Value | None, scale: float | None = None) -> Value:
        """A constant; it takes the name of the old weight `like`."""
        op = like.op if like is not None and is_constant(like) else None
        name = cast(TensorOp, op).key if op is not None else ".".join(("+".join(self.location), "table"))
        key = self.module.weights.add(name, np.ascontiguousarray(array))
        quant = None if scale is None else Quant(scale)
        return self._append("weight", [], _type(array, quant), {"key": key})

    def report(self, op: Operation, text: str) -> None:
        self.reports[op] = text

    # -- what the pass uses ---------------------------------------------------------------------------------------
    def mark(self) -> Mark:
        """A point to go back to."""
        return len(self.new.ops), len(self.ints), len(self.reals), len(self.others), len(self.constants)

    def rollback(self, mark: Mark) -> None:
        """Forget everything built since `mark`."""
        count, ints, reals, others, constants = mark
        _cut(self.ints, ints)
        _cut(self.reals, reals)
        _cut(self.others, others)
        _cut(self.constants, constants)
        for op in reversed(self.new.ops[count:]):
            if op.name == "tensorop.weight":
                self.module.weights.pop(cast(TensorOp, op).key, None)
            op.erase()

    def accept(self, op: TensorOp, results: Sequence[Value]) -> None:
        """Let i8 values stand for the results of an old op."""
        final = []
        for old, new in zip(op.results, results, strict=True):
            wanted = self.plan.thresholds[old]
            if old in self.plan.exact and not same(threshold_of(new), wanted):
                new = self._rescale(new, wanted)
            final.append(new)
            self.ints[old] = new
        self._name(op, final)

    def on_cpu(self, op: Operation, reason: str) -> None:
        """Keep an op as it is, on float operands."""
        new = rebuild(cast(TensorOp, op), [self.real(v) for v in op.operands])
        for note in _NOTES:
            new.attributes.pop(note, None)
        new.attributes[PLACE_CPU] = reason
        self.new.body.append(new)
        self.reals.update(zip(op.results, new.results))

    def real(self, value: Value) -> Value:
        """The value as the old function has it: float (dequantized where only i8 exists), or its own integer type."""
        if is_constant(value):
            return self._constant(value)
        if value not in self.reals:
            have = self.ints[value]
            self.reals[value] = self._append("dequantize", [have], TensorType(value.shape))
        return self.reals[value]

    def finish(self, function: Function) -> None:
        """Write the return op; inputs that only CPU ops read become float again."""
        outputs = [self.ints.get(v) or self.real(v) for v in function.returned]
        self.new.set_outputs(outputs, function.output_names)
        for old, argument in zip(function.arguments, self.new.arguments):
            users = argument.users
            if old in self.ints and all(op.short_name in ("dequantize", "return") for op in users):
                argument.type = old.type
                for op in [op for op in users if op.short_name == "dequantize"]:
                    op.result.replace_all_uses_with(argument)
                    op.erase()

    # -- inside ---------------------------------------------------------------------------------------------------
    def _append(
        self, name: str, operands: list[Value], type: TensorType, attributes: Mapping[str, Any] | None = None
    ) -> Value:
        return self.new.body.append(find_op(name)(operands, attributes, [type], self.location)).result

    def _default(self, value: Value) -> float:
        array = self.constant(value)
        return self.plan.thresholds[value] if array is None else constant_threshold(array)

    def _convert(self, value: Value, have: Value | None, threshold: float) -> Value:
        array = self.constant(value)
        if array is not None:
            if not np.isfinite(array).all():
                raise NoInt8Form("it reads a constant with NaN or infinity")
            return self.weight(arith.quantize_real(array, threshold), value, threshold / 128)
        if have is None:
            return self._append("quantize", [self.real(value)], i8(value.shape, threshold))
        return self._rescale(have, threshold)

    def _rescale(self, value: Value, threshold: float) -> Value:
        multiplier, shift = rescaling(threshold_of(value) / threshold)
        return self.emit("muls_shift", [value], {"multiplier": multiplier, "rshift": shift}, threshold)

    def _constant(self, value: Value) -> Value:
        if value not in self.constants:
            array = self.constant(value)
            op = cast(TensorOp, value.op)
            self.module.weights[op.key] = cast("NDArray[Any]", array)
            self.constants[value] = self._append("weight", [], value.type, {"key": op.key})
        return self.constants[value]

    def _name(self, op: Operation, results: Sequence[Value]) -> None:
        """The new values carry the source tensor names of the old op, unless they are other tensors themselves."""
        names = op.attributes.get(TENSOR_NAME)
        producer = results[0].op
        if names is not None and producer is not None and producer.location == op.location:
            producer.attributes.setdefault(TENSOR_NAME, names)


def _cut(table: dict[_Key, Value], size: int) -> None:
    """Drop what was added to a dict after it had `size` entries."""
    for key in list(table)[size:]:
        del table[key]


def i8(shape: Sequence[int], threshold: float) -> TensorType:
    return TensorType(tuple(shape), "i8", Quant.from_threshold(threshold))


def threshold_of(value: Value) -> float:
    """Threshold of an i8 value."""
    quant = value.type.quant
    if quant is None:
        raise ValueError(f"{value.type} has no quantization")
    return quant.threshold


def same(a: float, b: float) -> bool:
    """Equal but for rounding in the last digits."""
    return abs(a - b) <= _SAME * max(a, b)


def _type(array: NDArray[Any], quant: Quant | None) -> TensorType:
    plain = type_of_array(array)
    return TensorType(plain.shape, plain.dtype, quant)


def detached(shape: Sequence[int]) -> Value:
    """A float value outside any function, to evaluate an op on."""
    return Value(TensorType(tuple(shape)), Block(), 0)
