"""Likely causes of a layer's error, numbered; the first that holds is told.

Each gives a sentence for people. Thresholds are chosen by what was seen on networks with known faults
(tests/accuracy).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bmcompiler.accuracy.pairs import Pair
from bmcompiler.accuracy.statistics import LayerNumbers
from bmcompiler.ir import Operation
from bmcompiler.ir.keys import is_weight
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp

_CUT_SHARE = 0.5
"""Share of the error in values at the end of the range from which cutting off is the cause."""
_FEW_CODES = 0.25
_COARSE_STEPS = 16
"""Steps of 127 below which a channel's weights are coarse."""


def likely_cause(pair: Pair, row: LayerNumbers) -> str:
    """One phrase, "" where nothing stands out."""
    if row.codes is None:
        return ""
    for cause in _CAUSES:
        text = cause(pair, row)
        if text:
            return text
    return ""


def _clipped(pair: Pair, row: LayerNumbers) -> str:
    """1. Most of the error is in values at the end of the range."""
    if row.noise and row.cut > _CUT_SHARE * row.noise and row.saturated_share > 0:
        largest = _range(row)
        return f"clipped: {row.saturated_share:.2%} of the values, the range ends at {largest:.4g} of {row.peak:.4g}"
    return ""


def _dead_channel(pair: Pair, row: LayerNumbers) -> str:
    """2. A channel that is always 0 on the samples has the weights that set the scale of all."""
    found = _weight(pair, row)
    source = None if row.layer.real.op is None or not row.layer.real.op.operands else row.layer.real.op.operands[0]
    reads = next((each for each in pair.layers if each.real is source), None)
    if found is None or reads is None or row.channels is None:
        return ""
    peaks = _peaks(found[0], found[1])
    if peaks is None or peaks.size != row.channels.size:
        return ""
    dead = row.channels == 0
    if dead.any() and not dead.all() and peaks[dead].max() > 2 * peaks[~dead].max():
        return f"dead channels: {int(dead.sum())} are always 0, and their weights set the scale"
    return ""


def _spread(pair: Pair, row: LayerNumbers) -> str:
    """3. Most channels of the weights use few of the steps that the largest channel needs."""
    found = _weight(pair, row)
    peaks = None if found is None else _peaks(found[0], found[1])
    if peaks is None or peaks.size < 2:
        return ""
    coarse = float((peaks <= _COARSE_STEPS).mean())
    if coarse >= 0.5:
        return f"spread of channels: {coarse:.0%} of them have weights of at most {_COARSE_STEPS} of 127 steps"
    return ""


def _zero_point(pair: Pair, row: LayerNumbers) -> str:
    """4. All values have one sign, and the codes of the other sign are never used."""
    assert row.codes is not None, "only tensors with codes are asked"
    half = row.codes[:128].sum()
    if row.layer.compiled.dtype == "i8" and not half and row.layer.kind not in ("relu",) and row.used_codes:
        return "zero point: values are never negative, half of the codes are not used"
    return ""


def _unused(pair: Pair, row: LayerNumbers) -> str:
    """5. The values use few of the codes."""
    used = row.used_codes
    if used is not None and used < _FEW_CODES:
        return f"unused range: {used:.0%} of the codes occur, values reach {row.peak:.4g} of {_range(row):.4g}"
    return ""


_CAUSES: tuple[Callable[[Pair, LayerNumbers], str], ...] = (_clipped, _dead_channel, _spread, _zero_point, _unused)


def _range(row: LayerNumbers) -> float:
    """The largest real value that the tensor can hold."""
    type = row.layer.compiled.type
    if type.quant is None:
        return 0.0
    return type.quant.scale * ((255 if type.dtype == "u8" else 127) - type.quant.zero_point)


def _weight(pair: Pair, row: LayerNumbers) -> tuple[Operation, Array] | None:
    """The integer op with weights among those that make the tensor, and its weights."""
    for op in row.layer.ops:
        if isinstance(op, TensorOp) and op.affine and len(op.operands) > 1 and is_weight(op.operands[1]):
            maker = op.operands[1].op
            assert maker is not None, "weights are made by an op"
            weight = pair.compiled.weights[maker.attributes["key"]]
            if weight.dtype == np.int8:
                return op, weight
    return None


def _peaks(op: Operation, weight: Array) -> Array | None:
    """Largest magnitude of the integer weights of each output channel."""
    magnitudes = np.abs(weight.astype(np.int16))
    if op.short_name == "conv":
        return magnitudes.reshape(len(magnitudes), -1).max(axis=1)
    if op.short_name == "scale":
        return magnitudes.ravel()
    if op.short_name == "matmul" and weight.ndim == 2:
        return magnitudes.max(axis=1 if op.attributes.get("transpose_right") else 0)
    return None
