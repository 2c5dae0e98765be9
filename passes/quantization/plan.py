"""Which threshold each tensor gets, decided before anything is rewritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bmcompiler.ir import Function, Operation, Value
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.ops.elements.activation import Clip
from bmcompiler.passes.quantization.base import Scaling, is_constant
from bmcompiler.passes.quantization.formulas import constant_threshold, product_threshold
from bmcompiler.passes.quantization.levels import reach


@dataclass
class Plan:
    """The result of planning.

    thresholds: of every float value. keeping: ops whose results have the format of their operand. joined: the common
    threshold of the operands of concat, max, min. saturating: clips whose upper bound int8 saturation enforces. exact:
    values that must have their threshold whatever it costs.
    """

    thresholds: dict[Value, float] = field(default_factory=dict)
    joined: dict[Operation, float] = field(default_factory=dict)
    saturating: set[Operation] = field(default_factory=set)
    exact: set[Value] = field(default_factory=set)
    keeping: set[Operation] = field(default_factory=set)


def make_plan(
    function: Function,
    calibrated: Mapping[Value, float],
    scaling: Callable[[Operation], Scaling],
    constant: Callable[[Value], Floats],
    exact: set[Value],
    of_constant: Callable[[Array], float] = constant_threshold,
) -> Plan:
    """Plan the thresholds of a calibrated function.

    1. The threshold of a relu's output is used for the op that feeds it, when nothing else reads that op.
    2. Ops that only move or select values (max_pool, reshape, slice, relu, ...) give their output the threshold of
       their input.
    3. Operands of concat, max and min share one threshold, the largest of theirs. Operands that can be produced at any
       threshold take it directly, also through ops of rule 2 that alone read them; the others are rescaled.
    4. clip with lower bound 0 that alone reads its operand: the operand's threshold becomes at most the upper bound,
       and saturation enforces the bound. Otherwise a look-up table does.
    5. What only a function reads that levels off has no larger threshold than it can tell (`levels`): most of the range
       of such an operand may lie where the result is constant.
    6. The values in `exact` keep their calibrated threshold; rules 1 to 5 do not apply to them.

    Args:
        scaling: how the threshold of an op's result comes about.
        constant: the array of a weight. of_constant: its threshold.
    """
    planner = _Planner(Plan(dict(calibrated), exact=exact), scaling, lambda value: of_constant(constant(value)))
    for op in function.ops[:-1]:
        if op.operands and any(result.type.is_float for result in op.results):
            planner.visit(op)
    return planner.plan


class _Planner:
    def __init__(
        self,
        plan: Plan,
        scaling: Callable[[Operation], Scaling],
        constant: Callable[[Value], float],
    ) -> None:
        self.plan, self.scaling, self.constant = plan, scaling, constant

    def visit(self, op: Operation) -> None:
        how = self.scaling(op)
        if op.short_name == "clip" and how is Scaling.FREE and self._saturate(op):
            return
        if op.short_name == "relu" and how is Scaling.KEEPS:
            self._push_alone(op.operands[0], self.plan.thresholds[op.result])
        far = None if is_constant(op.operands[0]) else reach(op, self.plan.thresholds[op.results[0]])
        if far is not None and far < self._of(op.operands[0]):
            self._push_alone(op.operands[0], far)
        if how is Scaling.KEEPS:
            self.plan.keeping.add(op)
            self._set(op, self._of(op.operands[0]))
        elif how is Scaling.JOINS:
            self._join(op, max(map(self._of, op.operands)))
        elif how is Scaling.PRODUCT:
            left, right = map(self._of, op.operands[:2])
            self._set(op, product_threshold(left, right, self.plan.thresholds[op.result])[0])

    def _of(self, value: Value) -> float:
        if is_constant(value):
            return self.constant(value)
        return self.plan.thresholds[value]

    def _set(self, op: Operation, threshold: float) -> None:
        for result in op.results:
            if result not in self.plan.exact:
                self.plan.thresholds[result] = threshold

    def _push_alone(self, value: Value, threshold: float) -> bool:
        """Give a value that is read once another threshold, if its producers can make that for free."""
        return len(value.uses) == 1 and self._push(value, threshold)

    def _push(self, value: Value, threshold: float) -> bool:
        op = value.op
        if op is None or is_constant(value) or value in self.plan.exact:
            return False
        how = self.scaling(op)
        if op in self.plan.saturating:
            within = threshold <= _upper(op) and self._push_alone(op.operands[0], threshold)
            if not within:
                self.plan.saturating.discard(op)
        elif how is Scaling.JOINS:
            self._join(op, threshold)
        elif how is Scaling.PRODUCT or (
            how is Scaling.KEEPS and (len(op.results) > 1 or not self._push_alone(op.operands[0], threshold))
        ):
            return False
        self.plan.thresholds[value] = threshold
        return True

    def _join(self, op: Operation, threshold: float) -> None:
        """Rule 3."""
        if op.results[0] in self.plan.exact:
            threshold = self.plan.thresholds[op.results[0]]
        self.plan.joined[op] = threshold
        for value in op.operands:
            self._push_alone(value, threshold)
        self._set(op, threshold)

    def _saturate(self, op: Operation) -> bool:
        """Rule 4."""
        upper = _upper(op)
        source = op.operands[0]
        if not isinstance(op, Clip) or op.min != 0 or not 0 < upper < float("inf"):
            return False
        threshold = min(self.plan.thresholds[op.result], upper)
        if not self._push_alone(source, threshold) and self.plan.thresholds[source] > upper:
            return False
        self.plan.saturating.add(op)
        self._set(op, self.plan.thresholds[source])
        return True


def _upper(op: Operation) -> float:
    return float(op.attributes.get("max", float("inf")))
