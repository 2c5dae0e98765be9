"""The new function being built: which float value has which integer counterpart, and what lies between the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from bmcompiler.ir import Function, Module, Operation, Quant, TensorType, Value
from bmcompiler.ir.keys import LARGE, TENSOR_NAME, THRESHOLD, THRESHOLD_SOURCE, TOWARDS_ZERO
from bmcompiler.numeric.arrays import Array, Int8s
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.passes.quantization.base import NoInt8Form, is_constant
from bmcompiler.passes.quantization.formats import F
from bmcompiler.passes.quantization.growing import Growing
from bmcompiler.passes.quantization.plan import Plan
from bmcompiler.passes.rewriting import producer, rebuild
from bmcompiler.target import Target

if TYPE_CHECKING:
    from bmcompiler.passes.quantization.rounding import WeightRounding

_NOTES = (THRESHOLD, THRESHOLD_SOURCE, TOWARDS_ZERO)
_HALVES_HOLD = 65504 / 16
"""Thresholds from which on sums on the way, or values that calibration did not see, might be infinite in f16."""
_Key = TypeVar("_Key")
Mark = tuple[int, int, int, int, int]


class Building(Growing[F]):
    """Builds the integer version of `function` beside it, op by op.

    A scheme is a subclass that defines the methods of `formats.Formats`, and those of `forms.Forms`.
    `integer_io`: float inputs of the net that an integer op reads become integers, and outputs are what their producers
    make; otherwise both stay. `rounder`: which integers the weights of layers become; None: the nearest.
    """

    def __init__(
        self,
        module: Module,
        function: Function,
        plan: Plan,
        target: Target | None,
        integer_io: bool = True,
        rounder: WeightRounding | None = None,
    ) -> None:
        super().__init__(function, target)
        self.source, self.plan, self.integer_io, self.rounder = module, plan, integer_io, rounder
        self.reals: dict[Value, Value] = {}
        self.ints: dict[Value, Value] = {}
        self.others: dict[tuple[Value, F], Value] = {}
        self.constants: dict[Value, Value] = {}
        self.reports: dict[Operation, Callable[[], str]] = {}
        self.made: dict[Operation, list[Operation]] = {}
        for argument in function.arguments:
            if argument.dtype == "f32" and integer_io:
                self.ints[argument] = self.new.body.add_argument(self.type_of(argument.shape, self.wanted(argument)))
            else:
                self.reals[argument] = self.new.body.add_argument(argument.type)

    # -- what conversions use ------------------------------------------------------------------------------------------

    def constant(self, value: Value | None) -> Array | None:
        """The array behind a weight of the old function, None for anything else."""
        weight = producer(value, Weight)
        return None if weight is None else self.source.weights[weight.key]

    def need_constant(self, value: Value, what: str) -> Array:
        """The array behind a weight. Raises NoInt8Form for a computed tensor."""
        array = self.constant(value)
        if array is None:
            raise NoInt8Form(f"its {what} is computed at run time")
        return array

    def request(self, value: Value, wanted: F | None = None) -> Value:
        """The integer counterpart of an old float value, in the format `wanted` or else in the one it has.

        Another format costs one rescaling, a value that exists only in float one quantize; each is made once.
        Raises NoInt8Form for values that are not f32.
        """
        if value.dtype != "f32":
            raise NoInt8Form(f"it reads {value.dtype}, which has no int8 form")
        have = self.ints.get(value)
        if have is not None and (wanted is None or self.same(self.format_of(have), wanted)):
            return have
        chosen = self._default(value) if wanted is None else wanted
        key = (value, chosen)
        if key not in self.others:
            self.others[key] = self._convert(value, have, chosen)
        return self.others[key]

    def given(self, value: Value) -> Value:
        """What stands for an old value: its integer counterpart, or for what is no f32 the value itself."""
        return self.request(value) if value.dtype == "f32" else self.real(value)

    def rounded(self, op: TensorOp, weight: Array, nearest: Int8s, scale: float | Quant | None) -> Int8s:
        """The integers of a layer's real weights: `nearest`, unless samples say better."""
        return nearest if self.rounder is None else self.rounder.integers(op, weight, nearest, scale)

    def in_mode(self, op: Operation, mode: str) -> bool:
        """Whether an op of the old function was lowered in a mode that it has beside others."""
        return any(new.attributes.get("mode") == mode for new in self.made[op])

    def report(self, op: Operation, text: Callable[[], str]) -> None:
        """Note what tells the user of an op, should somebody ask; the last one counts."""
        self.reports[op] = text

    # -- what the pass uses; `made`: new ops by the old op that they stand for ----------------------------------------
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
            if isinstance(op, Weight):
                self.module.weights.pop(op.key, None)
            op.erase()

    def accept(self, op: TensorOp, results: Sequence[Value]) -> None:
        """Let integer values stand for the results of an old op; what was no f32 has its own type still."""
        final = []
        for old, new in zip(op.results, results, strict=True):
            if old.dtype != "f32":
                self.reals[old] = new
                final.append(new)
                continue
            wanted = self.wanted(old)
            if old in self.plan.exact and not self.same(self.format_of(new), wanted):
                new = self.rescale(new, wanted)
            final.append(new)
            self.ints[old] = new
        self._name(op, final)

    def in_float(self, op: Operation, reason: str) -> None:
        """Keep an op as it is, on float operands."""
        new = rebuild(cast(TensorOp, op), [self.real(v) for v in op.operands])
        stored = new.attributes.get(THRESHOLD, 0.0)
        largest = max(stored) if isinstance(stored, tuple) else stored
        for note in _NOTES:
            new.attributes.pop(note, None)
        if largest > _HALVES_HOLD:
            new.attributes[LARGE] = largest
        self.note_float(new, reason)
        self.new.body.append(new)
        self.reals.update(zip(op.results, new.results))

    def real(self, value: Value) -> Value:
        """The value as the old function has it: float (dequantized if need be), or its own integer type."""
        if is_constant(value):
            return self._constant(value)
        if value not in self.reals:
            have = self.ints[value]
            self.reals[value] = self._append("dequantize", [have], TensorType(value.shape))
        return self.reals[value]

    def finish(self, function: Function) -> None:
        """Write the return op; integer inputs that only float ops read become float again."""
        outputs = [(self.ints.get(v) if self.integer_io else None) or self.real(v) for v in function.returned]
        self.new.set_outputs(outputs, function.output_names)
        for old, argument in zip(function.arguments, self.new.arguments):
            users = argument.users
            if (
                old in self.ints
                and not self.asked_for_io
                and all(op.short_name in ("dequantize", "return") for op in users)
            ):
                argument.type = old.type
                for op in [op for op in users if op.short_name == "dequantize"]:
                    op.result.replace_all_uses_with(argument)
                    op.erase()

    # -- inside ---------------------------------------------------------------------------------------------------
    def _default(self, value: Value) -> F:
        array = self.constant(value)
        return self.wanted(value) if array is None else self.of_constant(array)

    def _convert(self, value: Value, have: Value | None, wanted: F) -> Value:
        array = self.constant(value)
        if array is not None:
            if not np.isfinite(array).all():
                raise NoInt8Form("it reads a constant with NaN or infinity")
            quant = self.type_of((), wanted).quant
            return self.weight(self.integers(array, wanted), value, quant.scale if quant else None)
        if have is None:
            return self._append("quantize", [self.real(value)], self.type_of(value.shape, wanted), self.rounding)
        return self.rescale(have, wanted)

    def _constant(self, value: Value) -> Value:
        if value not in self.constants:
            array = cast("Array", self.constant(value))
            key = self.module.weights.add(cast(Weight, value.op).key, array)  # an integer op may have the name already
            self.constants[value] = self._append("weight", [], value.type, {"key": key})
        return self.constants[value]

    def _name(self, op: Operation, results: Sequence[Value]) -> None:
        """The new values carry the source tensor names of the old op, unless they are other tensors themselves."""
        names = op.attributes.get(TENSOR_NAME)
        maker = results[0].op
        if names is not None and maker is not None and maker.location == op.location:
            maker.attributes.setdefault(TENSOR_NAME, names)


def _cut(table: dict[_Key, Value], size: int) -> None:
    """Drop what was added to a dict after it had `size` entries."""
    for key in list(table)[size:]:
        del table[key]
