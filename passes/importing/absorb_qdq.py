"""Models that carry their quantization as QuantizeLinear / DequantizeLinear pairs keep its scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS, SOURCE_TYPES
from bmcompiler.ir import Function, Module, Operation, Rewriter, Value, apply_patterns, erase_dead
from bmcompiler.ir.keys import STATED, STATED_NAMES, STATED_SCALES, STATED_TYPES, STATED_ZEROS, TENSOR_NAME
from bmcompiler.ir.types import DTYPES
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.ops.elements.linear_quant import DequantizeLinear, QuantizeLinear
from bmcompiler.passes.rewriting import Patterns, PatternTable, declared, hand_name, make, on, producer
from bmcompiler.passmanager import Pass, PassContext, PassResult

Form = tuple[str, float, int]
"""Element type ("" where it is not one), scale, zero point."""


@dataclass(frozen=True)
class AbsorbQdq(Pass):
    """Turn pairs of quantize_linear and dequantize_linear into thresholds of the tensors between them.

    1. dequantize_linear(quantize_linear(x)) with one equal scale and zero point for the whole tensor: x itself, and
       the threshold of x is stated (function attributes "stated_tensors" and "stated_thresholds"), so that `calibrate`
       takes it instead of measuring. threshold = the larger of scale * (zero point - lowest) and
       scale * (highest - zero point) * 128 / 127: 128 * scale for i8 with zero point 0. Element type, scale and zero
       point are stated, too, for schemes that have zero points.
    2. op(quantize_linear(x)), where op only moves or selects elements (reshape, max_pool...): quantize_linear(op(x)),
       which brings the pair together.

    Weights behind such pairs are constants: fold-constants computes them. What stays (scales per channel, models with
    integer inputs or outputs) runs as the model says it. Values of a float pipeline change by the rounding left out.
    """

    name = "absorb-qdq"
    requires = (SOURCE_TYPES, NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        changed = False
        for function in module.functions:
            found = _AbsorbQdq(module, function)
            table = found.table()

            def pattern(op: Operation, rewriter: Rewriter, table: PatternTable = table) -> bool:
                if not isinstance(op, TensorOp):
                    return False
                return any(each(op, rewriter) for each in (*table.get(type(op), ()), *table[TensorOp]))

            changed |= apply_patterns(function, [pattern])
            if found.found:
                function.attributes[STATED_NAMES] = tuple(found.found)
                function.attributes[STATED] = tuple(found.found.values())
                forms = [found.forms.get(name, ("", 0.0, 0)) for name in found.found]
                for key, column in zip((STATED_TYPES, STATED_SCALES, STATED_ZEROS), zip(*forms)):
                    function.attributes[key] = column
                erase_dead(function)
        return PassResult(changed)


def stated(function: Function) -> dict[str, float]:
    """Thresholds that the model itself states, by tensor name."""
    return dict(zip(function.attributes.get(STATED_NAMES, ()), function.attributes.get(STATED, ())))


def stated_forms(function: Function) -> dict[str, Form]:
    """Element type, scale and zero point that the model itself states, by tensor name; none where it states several."""
    columns = [function.attributes.get(key, ()) for key in (STATED_TYPES, STATED_SCALES, STATED_ZEROS)]
    return {name: form for name, form in zip(function.attributes.get(STATED_NAMES, ()), zip(*columns)) if form[0]}


class _AbsorbQdq(Patterns):
    def __init__(self, module: Module, function: Function) -> None:
        super().__init__(module)
        self.inputs = dict(zip(function.arguments, function.input_names))
        self.found: dict[str, float] = stated(function)
        self.forms: dict[str, Form] = {name: ("", 0.0, 0) for name in self.found} | stated_forms(function)

    def table(self) -> PatternTable:
        return {**on(DequantizeLinear, self.pair), **on(TensorOp, self.move)}

    def pair(self, op: DequantizeLinear, rewriter: Rewriter) -> bool:
        """Rule 1."""
        first = producer(op.input, QuantizeLinear)
        parameters = self.parameters(op)
        if first is None or parameters is None or parameters != self.parameters(first):
            return False
        value: Value = first.input
        if value.dtype != op.result.dtype or producer(value, Weight):
            return False
        for gone in (first, op):
            hand_name(gone, value)
        self.state(value, (first.dtype, *parameters))
        rewriter.replace(op, [value])
        return True

    def state(self, value: Value, form: Form) -> None:
        name = self.inputs.get(value) or self.name(value)
        if name:
            self.found[name] = max(_threshold(form), self.found.get(name, 0.0))
            self.forms[name] = form if self.forms.get(name, form) == form else ("", 0.0, 0)

    def name(self, value: Value) -> str:
        """Tensor name of a computed value; one without gets that of its layer and op."""
        op = cast(TensorOp, value.op)
        names = op.attributes.get(TENSOR_NAME, "")
        if isinstance(names, tuple):
            return str(names[value.index])
        if not names and len(op.results) == 1:
            names = op.attributes[TENSOR_NAME] = f"{op.label}/{op.opname}"
        return str(names)

    def move(self, op: TensorOp, rewriter: Rewriter) -> bool:
        """Rule 2."""
        if not op.selects or (len(op.operands), len(op.results)) != (1, 1):
            return False
        first = producer(op.operands[0], QuantizeLinear)
        parameters = self.parameters(first) if first is not None else None
        if first is None or parameters is None or not first.input.type.is_float or producer(first.input, Weight):
            return False
        hand_name(first, first.input)
        self.state(first.input, (first.dtype, *parameters))
        moved = make(op.opname, [first.input], declared(op))
        again = make("quantize_linear", [moved.result, *first.operands[1:]], {"dtype": first.dtype})
        again.attributes |= {k: v for k, v in op.attributes.items() if "." in k}
        rewriter.replace_with(op, moved, again)
        return True

    def parameters(self, op: TensorOp) -> tuple[float, int] | None:
        """Scale and zero point when they are one constant each."""
        found = [self.constant(value) for value in op.operands[1:]]
        if any(array is None or array.size != 1 for array in found):
            return None
        numbers = [np.asarray(array).reshape(-1)[0] for array in found]
        return float(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0


def _threshold(form: Form) -> float:
    """The magnitude that a symmetric i8 needs to cover the range of a quantization."""
    dtype, scale, zero_point = form
    limits = np.iinfo(DTYPES[dtype][1])
    low, high = (int(limits.min) - zero_point) * scale, (int(limits.max) - zero_point) * scale
    return max(-low, high * 128 / 127)
