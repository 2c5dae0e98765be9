"""Layers with weights in two terms of bytes (`bmcompiler.numeric.two_terms`)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import MODE_NOTE, WEIGHT_SHIFT
from bmcompiler.numeric.arrays import Array, Doubles, Int8s
from bmcompiler.numeric.by_block import by_block
from bmcompiler.numeric.two_terms import BITS, DOUBLE, INT8, MOST_FINER, finer_bits, left_over, second_term
from bmcompiler.ops.layers.nn import Convolution, Deconv, Matmul
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.formulas import Linear, linear
from bmcompiler.passes.quantization.plan import Plan
from bmcompiler.passes.quantization.rounding import WeightRounding
from bmcompiler.passes.quantization.shift.formats import Thresholds, threshold_of
from bmcompiler.target import Target


class TwoTerms(Thresholds):
    """Formats, and layers in mode "double".

    modes: wanted, by layer; doubled: those that have it. layers: integers of layers made before, for the same net.
    """

    def __init__(
        self,
        module: Module,
        function: Function,
        plan: Plan,
        target: Target | None,
        modes: Mapping[Operation, str] | None = None,
        rounder: WeightRounding | None = None,
        layers: dict[Hashable, Any] | None = None,
    ) -> None:
        super().__init__(module, function, plan, target, rounder=rounder)
        self.modes, self.doubled = modes or {}, set[Operation]()
        self.layers = {} if layers is None else layers

    def in_mode(self, op: Operation, mode: str) -> bool:
        """See `Building.in_mode`."""
        return mode == (DOUBLE if op in self.doubled else INT8)

    def layer_constants(self, ints: Linear, weight: Value | None, bias: Value | None) -> list[Value]:
        """Integers of a layer as operands."""
        return self.all_weights((ints.weight, weight, ints.weight_scale), (ints.bias, bias, ints.bias_scale))

    def in_two_terms(
        self,
        op: Convolution | Matmul,
        weight: Array,
        bias: Array | None,
        first: Linear,
        attributes: Mapping[str, Any],
    ) -> Value | None:
        """The layer in mode "double" where that is wanted and possible; first: its integers in one term.

        None where the first term leaves nothing, and where the target has no such form.
        """
        if self.modes.get(op) != DOUBLE or WEIGHT_SHIFT in op.attributes:
            return None
        key = op, DOUBLE, first.weight_scale
        if key not in self.layers:
            self.layers[key] = _second_term(weight, first.weight, first.weight_scale)
        second = self.layers[key]
        if not second.any():
            return None
        mark = self.mark()
        try:
            if isinstance(op, Matmul) or op.group == 1:
                out = self._dense(op, second, first, attributes)
            else:
                rest = left_over(weight, first.weight, first.weight_scale)
                out = self._summed(op, rest, bias, first, attributes)
        except NoInt8Form:
            self.rollback(mark)
            return None
        assert out.op is not None, "the layer was just made"
        out.op.attributes[MODE_NOTE] = DOUBLE
        self.doubled.add(op)
        return out

    def _dense(self, op: Convolution | Matmul, second: Int8s, first: Linear, attributes: Mapping[str, Any]) -> Value:
        """One product with what is read and an eighth of it, one after the other."""
        x = self.request(op.operands[0])
        coarse = self.emit("muls_shift", [x], {"multiplier": 1, "rshift": BITS}, threshold_of(x) * 2.0**BITS)
        axis = len(x.shape) - (2 if op.transpose_left else 1) if isinstance(op, Matmul) else 1
        both = self.emit("concat", [x, coarse], {"axis": axis})
        key = op, BITS, first.weight_scale
        if key not in self.layers:
            self.layers[key] = np.concatenate([first.weight, second], axis=_depth_axis(op))
        constants = self.layer_constants(_with_weight(first, self.layers[key]), op.operands[1], op.bias)
        return self.emit(op.opname, [both, *constants], {**attributes, "rshift": first.shift}, first.threshold)

    def _summed(
        self,
        op: Convolution,
        rest: Doubles,
        bias: Array | None,
        first: Linear,
        attributes: Mapping[str, Any],
    ) -> Value:
        """Two layers and the sum of their results."""
        if attributes.get("activation"):
            raise NoInt8Form("an activation inside comes before the sum of two results")
        x = self.request(op.operands[0])
        bias_rest = None
        if bias is not None and first.bias is not None:
            bias_rest = np.asarray(bias, np.float64) - first.bias * first.bias_scale
        bits = finer_bits(_peak(op, rest, bias_rest, threshold_of(x)), first.threshold)
        second = linear(rest, bias_rest, threshold_of(x), first.threshold / 2.0**bits)
        results = []
        for ints in (first, second):
            constants = self.layer_constants(ints, op.operands[1], op.bias)
            results.append(self.emit(op.opname, [x, *constants], {**attributes, "rshift": ints.shift}, ints.threshold))
        if second.threshold != first.threshold / 2.0**bits:
            raise NoInt8Form("what the first term leaves is no finer than the result")
        multipliers = (1 << MOST_FINER, 1 << MOST_FINER - bits)
        return self.emit("mac_shift", results, {"multipliers": multipliers, "rshift": MOST_FINER}, first.threshold)


def _second_term(weight: Array, first: Int8s, step: float) -> Int8s:
    """That of a dense layer."""
    return by_block(lambda w, w1: second_term(left_over(w, w1, step), step), first.dtype, weight, first)


def _with_weight(ints: Linear, weight: Int8s) -> Linear:
    return Linear(weight, ints.bias, ints.shift, ints.threshold, ints.weight_scale, ints.bias_scale)


def _depth_axis(op: Convolution | Matmul) -> int:
    """The axis of the weights along which products are summed, or the first of those."""
    if isinstance(op, Matmul):
        return len(op.operands[1].shape) - 2 + int(op.transpose_right)
    return 0 if isinstance(op, Deconv) else 1


def _peak(op: Convolution, rest: Array, bias: Array | None, source: float) -> float:
    """The largest magnitude that a layer with these real weights can give for an input up to `source`."""
    if isinstance(op, Deconv):
        c, o, kh, kw = rest.shape
        rest = rest.reshape(op.group, c // op.group, o, kh, kw).transpose(0, 2, 1, 3, 4).reshape(op.group * o, -1)
    sums = np.abs(rest).reshape(len(rest), -1).sum(axis=1) * source
    return float((sums if bias is None else sums + np.abs(bias)).max(initial=0.0))
