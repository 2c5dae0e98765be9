"""Inputs to prove a program with, as its device takes them: from the data, or drawn within what the inputs may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bmcompiler.inputs.source import Data, take
from bmcompiler.ir import Function, TensorType, Value
from bmcompiler.ir.keys import INPUT_THRESHOLDS
from bmcompiler.numeric import quant_modes
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.quant.data import bind_data

_FEW = 128
"""Whole numbers of which nothing is known are drawn below this: bytes, short sequences, and sums of them stay exact."""
_DEVIATIONS = 3.0
"""Standard deviations that a threshold is worth, for normal values that are cut off there."""


def samples_of(
    function: Function, data: Data | None, count: int, raw: bool = False
) -> tuple[list[dict[str, Array]], bool]:
    """Inputs of `count` runs of a compiled net, at most as many as the data has; and whether they are of the data.

    Each array has the shape and element type of its input: real numbers are quantized as the device holds them. The
    data serve if they have the inputs' shapes; a further program of a file may have others, and gets drawn inputs.

    raw: the data are what the device holds, not real numbers.
    """
    found = None if data is None else _of_data(function, data, count, raw)
    if found is not None:
        return found, True
    return [drawn(function, seed) for seed in range(count)], False


def _of_data(function: Function, data: Data, count: int, raw: bool) -> list[dict[str, Array]] | None:
    bound = bind_data(function, data)
    types = {name: value.type for name, value in zip(function.input_names, function.arguments)}
    for name, type in types.items():
        if name not in bound or not type.shape or tuple(bound[name].shape[1:]) != type.shape[1:]:
            return None
    if not types or not all(len(bound[name]) for name in types):
        return None
    first, batch = next((name, type.shape[0]) for name, type in types.items())
    runs = min(count, -(-len(bound[first]) // batch))
    return [
        {
            name: device_values(
                take(bound[name], run * type.shape[0], (run + 1) * type.shape[0]),
                replace(type, quant=None) if raw else type,
            )
            for name, type in types.items()
        }
        for run in range(runs)
    ]


def device_values(array: Array, type: TensorType) -> Array:
    """Real numbers as a tensor of the compiled net holds them."""
    if type.quant is None or type.is_float:
        return np.asarray(array).astype(type.numpy)
    return quant_modes.quantize_away(array, type.quant.scale, type.dtype, type.quant.zero_point)


def drawn(function: Function, seed: int) -> dict[str, Array]:
    """One input per argument, the same for the same seed.

    1. Quantized integers: all values of the type.
    2. Other integers: below the shortest axis that they, or what is computed from them in integers, are an index of.
    3. Floats: normal, cut off at the input's threshold where calibration left one.
    """
    rng = np.random.default_rng(seed)
    thresholds = function.attributes.get(INPUT_THRESHOLDS) or (0.0,) * len(function.arguments)
    pairs = zip(function.input_names, function.arguments, thresholds)
    return {name: _drawn(rng, value, float(threshold)) for name, value, threshold in pairs}


def _drawn(rng: np.random.Generator, value: Value, threshold: float) -> Array:
    type = value.type
    if type.is_float:
        reals = rng.normal(0, threshold / _DEVIATIONS if threshold else 1, type.shape)
        return (reals.clip(-threshold, threshold) if threshold else reals).astype(type.numpy)
    if type.dtype == "bool":
        return rng.integers(0, 2, type.shape).astype(type.numpy)
    if type.quant is not None:
        limits = np.iinfo(type.numpy)
        return rng.integers(limits.min, limits.max, type.shape, type.numpy, endpoint=True)
    return rng.integers(0, min(_index_limits(value), default=_FEW), type.shape).astype(type.numpy)


def _index_limits(value: Value) -> Iterator[int]:
    """Lengths of the axes that a value, or integers computed from it, are an index of."""
    left, seen = [value], {value}
    while left:
        one = left.pop()
        for op, at in one.uses:
            if isinstance(op, TensorOp) and at in op.index_operands:
                shape, axis = op.operands[0].shape, getattr(op, "axis", None)
                yield shape[axis] if axis is not None else min(shape, default=1)
                continue
            results = {each for each in op.results if not each.type.is_float} - seen
            seen |= results
            left += sorted(results, key=lambda each: each.index)
