"""Which layers do the harm: each is quantized alone, and the outputs of the rest, in float, say what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bmcompiler.accuracy.pairs import Layer, Pair, alone
from bmcompiler.accuracy.statistics import Numbers, OutputNumbers, float_values
from bmcompiler.evaluation.decisions import Decisions
from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir import Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.numeric.arrays import Array
from bmcompiler.options import Progress


def rank(pair: Pair, numbers: Numbers, steps: list[Mapping[str, Array]], progress: Progress | None = None) -> list[str]:
    """Layer names, the one that harms the outputs most first; fills `output_error` of each.

    Each layer computes as the device does on what the float network gives it; everything behind it is float. So what
    comes of it is the error of this layer alone: its rounding, what it cuts off, its weights, the rounding of what it
    reads. The inputs of the net count by their rounding.
    """
    totals = {layer.name: _Outputs(pair, numbers.judge) for layer in pair.layers}
    work = [(step, layer) for step in steps for layer in pair.layers]
    seen: tuple[Any, dict[Value, Array]] | None = None
    for step, layer in work if progress is None else progress(work, "finding culprits", len(work)):
        if seen is None or seen[0] is not step:
            seen = step, float_values(pair, step)
        result = alone(pair, layer, seen[1])
        if result is not None:
            totals[layer.name].add(seen[1], _after(pair, layer, result, seen[1]))
    for name, total in totals.items():
        numbers.layers[name].output_error = total.error
    return sorted(totals, key=lambda name: -(totals[name].error or 0.0))


class _Outputs:
    """Errors of all outputs, as these are judged."""

    def __init__(self, pair: Pair, judge: Decisions) -> None:
        self.pair, self.judge = pair, judge
        self.outputs = [OutputNumbers() for _ in pair.real.main.returned]
        self.seen = False

    def add(self, floats: Mapping[Value, Array], changed: Mapping[Value, Array]) -> None:
        self.seen = True
        main = self.pair.real.main
        named = {n: v for n, v in zip(main.output_names, main.returned) if v.type.is_float}
        wanted = self.judge.bounded({name: floats[value] for name, value in named.items()})
        found = self.judge.bounded({name: changed.get(value, floats[value]) for name, value in named.items()})
        for numbers, name in zip(self.outputs, main.output_names):
            if name in named:
                numbers.add(wanted[name], found[name])

    @property
    def error(self) -> float | None:
        """The worst output's; None for a layer that could not be computed alone."""
        if not self.seen:
            return None
        return max((each.balanced for each in self.outputs if each.signal is not None), default=0.0)


def _after(pair: Pair, layer: Layer, result: Array, floats: Mapping[Value, Array]) -> dict[Value, Array]:
    """Float values that change when the layer's result does."""
    changed = {layer.real: result.astype(floats[layer.real].dtype)}
    ops = pair.real.main.ops[:-1]
    start = 0 if layer.real.op is None else ops.index(layer.real.op) + 1
    for op in ops[start:]:
        if changed.keys().isdisjoint(op.operands):
            continue
        arrays = [_operand(pair, v, changed, floats) for v in op.operands]
        for value, array in zip(op.results, evaluate_op(op, arrays)):
            if not np.array_equal(array, floats[value]):
                changed[value] = array
    return changed


def _operand(pair: Pair, value: Value, changed: Mapping[Value, Array], floats: Mapping[Value, Array]) -> Array:
    if value.op is not None and is_weight(value):
        return pair.real.weights[value.op.attributes["key"]]
    return changed[value] if value in changed else floats[value]
