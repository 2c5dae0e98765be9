"""Compare what reaches the first batch norm of a net with the mean and variance that training left in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bmcompiler.inputs.source import Array
from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir.keys import is_weight
from bmcompiler.ops.base import TensorOp

if TYPE_CHECKING:
    from bmcompiler.ir import Module, Operation, Value

_AHEAD = ("add", "sub", "mul", "div", "pad", "permute", "reshape", "cast")
"""What may lie between the input and the batch norm beside affine layers: cheap to run on a few samples."""
_MOST_SAMPLES = 4


def first_batch_norm(module: Module) -> Operation | None:
    """The batch norm (constant parameters) of the input or of the first layer; only affine ops lie ahead of it."""
    for op in module.main.ops:
        if op.short_name != "batch_norm":
            continue
        ahead = _ahead(op.operands[0])
        if ahead is None or sum(each.products() > 0 for each in ahead) > 1:
            return None
        constant = all(is_weight(value) for value in op.operands[1:])
        return op if constant else None
    return None


def first_layer_ratio(module: Module, norm: Operation, arrays: Mapping[str, Array]) -> tuple[float, float] | None:
    """(distance, spread) of the values at a batch norm, both about 1 for data like those of training.

    Per channel distance is the root mean square of (x - mean) / sqrt(variance), spread the standard deviation of x over
    sqrt(variance); the medians of the channels are returned, None when they are not finite. `arrays`: checked samples.

    Four trained nets (PP-OCR, SSD face) give 0.7 to 1.4 on photos prepared as in training, 44 to 146 on raw pixels
    where -1..1 was meant, and a spread of 0.003 on values divided by 255 once too often.
    """
    found = _values_at(module, norm, arrays)
    mean, variance = (_value(module, {}, value).astype(np.float64) for value in norm.operands[3:5])
    alive = variance > 1e-6 * variance.max(initial=0.0)
    if not alive.any():
        return None
    distances, spreads = [], []
    with np.errstate(all="ignore"):
        for channel in np.flatnonzero(alive):  # one by one: all in float64 would be the peak of memory of a compilation
            flat = found[:, channel].ravel().astype(np.float64)
            distances.append(np.sqrt(((flat - mean[channel]) ** 2).mean() / variance[channel]))
            spreads.append(flat.std() / np.sqrt(variance[channel]))
    ratios = float(np.median(distances)), float(np.median(spreads))
    return ratios if np.isfinite(ratios).all() else None


def _ahead(value: Value) -> list[TensorOp] | None:
    """The ops that make `value`, weights left out, in order; None when one of them may not lie there."""
    if value.op is None or is_weight(value):
        return []
    op = value.op
    if not isinstance(op, TensorOp) or not (op.affine or op.opname in _AHEAD) or op.attributes.get("activation"):
        return None
    parts = [_ahead(operand) for operand in op.operands]
    found: dict[TensorOp, None] = {}
    for part in parts:
        if part is None:
            return None
        found.update(dict.fromkeys(part))
    return [*found, op]


def _values_at(module: Module, norm: Operation, arrays: Mapping[str, Array]) -> Array:
    """What the batch norm reads, on the first whole batches of the samples."""
    function = module.main
    ops = _ahead(norm.operands[0]) or []
    count = min(_MOST_SAMPLES, *map(len, arrays.values()))
    batch = max((v.shape[0] for v in function.arguments if v.shape), default=1)
    results = []
    for step in range(max(1, count // batch)):
        values: dict[Value, Array] = {}
        for name, argument in zip(function.input_names, function.arguments):
            size = argument.shape[0] if argument.shape else 1
            rows = np.arange(step * size, (step + 1) * size) % len(arrays[name])
            values[argument] = arrays[name][rows].reshape(argument.shape)
        for op in ops:
            inputs = [_value(module, values, operand) for operand in op.operands]
            values.update(zip(op.results, evaluate_op(op, inputs)))
        results.append(_value(module, values, norm.operands[0]))
    return np.concatenate(results)


def _value(module: Module, values: Mapping[Value, Array], value: Value) -> Array:
    if value.op is not None and is_weight(value):
        return module.weights[value.op.attributes["key"]]
    return values[value]
