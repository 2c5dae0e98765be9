"""Biases that take back what integers shift on average."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.numeric.arrays import Array, Doubles
from bmcompiler.passes.precision.calibrate import tensor_names
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.reference import Reference
from bmcompiler.passes.quantization.choice.thresholds import confirmed
from bmcompiler.passes.quantization.choice.units import Unit, is_layer
from bmcompiler.passes.rewriting import make

Shifts = Mapping[str, Doubles]
"""By layer name, what is taken from the bias of each channel."""


def corrected(
    module: Module,
    function: Function,
    reference: Reference,
    low: Building[Any],
    accepted: set[Operation],
    lower: Callable[[], tuple[Building[Any], set[Operation]]],
) -> tuple[Building[Any], set[Operation], Shifts]:
    """The integer net, lowered again with corrected biases where other samples confirm that it is more exact.

    Rounded weights shift the mean of a channel, because what they are multiplied with is not 0 on average (bias
    correction, Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias Correction"). The shifts
    are measured on one half of the reference's steps and judged on the other. The function keeps the biases that were
    taken.
    """
    count = len(reference.steps)
    fitted, held_back = range(count // 2), range(count // 2, count)
    layers = [Unit((op,)) for op in biased_layers(function) if op in accepted]
    if not layers or not fitted:
        return low, accepted, {}
    errors = reference.own_errors(low, layers, fitted)
    names = tensor_names(function)
    shifts = {names[unit.results[0]][0]: _mean(unit.head, np.stack(found)) for unit, found in errors.items()}
    before = {unit.head: unit.head.operands[2] for unit in layers}
    apply(module, function, shifts)
    better, still = lower()
    plain, now = (reference.output_errors(each, held_back) for each in (low, better))
    if still == accepted and confirmed(now, plain):
        return better, still, shifts
    for op, bias in before.items():
        op.set_operand(2, bias)
    return low, accepted, {}


def biased_layers(function: Function) -> list[Operation]:
    """Layers with constant weights and a constant bias."""
    found = [op for op in function.ops if is_layer(op) and len(op.operands) > 2]
    return [op for op in found if all(map(is_weight, op.operands[1:3]))]


def apply(module: Module, function: Function, shifts: Shifts) -> None:
    """Give the layers of a function their corrected biases."""
    names = tensor_names(function)
    for op in biased_layers(function):
        shift = shifts.get(names[op.results[0]][0])
        if shift is None:
            continue
        old: Value = op.operands[2]
        assert old.op is not None, "weights are made by an op"
        bias = module.weights[old.op.attributes["key"]]
        key = module.weights.add(old.op.attributes["key"], (bias - shift.reshape(bias.shape)).astype(np.float32))
        new = make("weight", (), {"key": key}, [old.type], op.location)
        function.body.insert_before(op, new)
        op.set_operand(2, new.result)


def _mean(op: Operation, errors: Array) -> Doubles:
    """The mean error of each channel over steps, less what chance alone may give with so few of them."""
    axis = op.results[0].type.rank if op.short_name == "matmul" else 2
    others = tuple(k for k in range(1, errors.ndim) if k != axis)
    means: Doubles = errors.mean(axis=others, dtype=np.float64)
    found = means.mean(axis=0)
    chance = means.var(axis=0, ddof=1) / len(means) if len(means) > 1 else np.square(found)
    shrunk: Doubles = found * np.clip(1 - chance / np.maximum(np.square(found), 1e-30), 0, 1)
    return shrunk
