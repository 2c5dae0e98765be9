"""What calibration ran on, in words, and warnings about samples that look wrong.

Compare what reaches the first batch norm of a net with the mean and variance that training left in it; where it was
folded into the first convolution, what that makes of pixels with its biases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bmcompiler.inputs.files import counted
from bmcompiler.inputs.images import image_layout
from bmcompiler.inputs.source import Data, Samples
from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir.keys import is_weight
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.quant.data import bind_data, check_data, is_constant

if TYPE_CHECKING:
    from bmcompiler.ir import Module, Operation, Value


_AHEAD = ("add", "sub", "mul", "div", "pad", "permute", "reshape", "cast", "slice", "concat")
"""What may lie between the input and the batch norm beside affine layers: cheap to run on a few samples."""
_MOST_SAMPLES = 4


def first_batch_norm(module: Module) -> Operation | None:
    """The batch norm (constant parameters) of the input or of the first layer; only affine ops lie ahead of it."""
    for op in module.main.ops:
        if op.short_name != "batch_norm":
            continue
        ahead = ahead_of(op.operands[0])
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
    return norm_ratios(module, norm, _values_of(module, norm.operands[0], arrays))


def norm_ratios(module: Module, norm: Operation, found: Array) -> tuple[float, float] | None:
    """`first_layer_ratio` of values that reach the norm."""
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


def first_biased_layer(module: Module) -> TensorOp | None:
    """The first layer with products, a convolution with biases; None for others, and behind other than affine ops."""
    for op in module.main.ops:
        if not isinstance(op, TensorOp) or not op.products():
            continue
        biased = op.short_name == "conv" and len(op.operands) == 3 and all(map(is_weight, op.operands[1:]))
        ahead = ahead_of(op.results[0])
        return op if biased and ahead is not None and sum(each.products() > 0 for each in ahead) == 1 else None
    return None


def pixels_over_biases(module: Module, layer: TensorOp, arrays: Mapping[str, Array]) -> float | None:
    """How many times larger than its biases are the sums of products of a first layer that reads pixels 0..255.

    Of the root mean squares of the channels' sums and of the magnitudes of the biases the medians are compared.
    None where the values that the layer reads are not 0 to 255, or there are no biases. `arrays`: checked samples.

    Pixels are what CenterFace was trained on: 1.7. Of four nets for -1..1 (BlazeFace, MTCNN) they make 300 to 1,900,
    of LeNet for 0..1 3,600; values as in training, whatever their sign, 1.8 to 6.6 and 14.
    """
    read = _values_of(module, layer.operands[0], arrays)
    if read.min(initial=0) < 0 or not FAR_OFF < read.max(initial=0) <= 255:
        return None
    return over_biases(module, layer, _values_of(module, layer.results[0], arrays))


def over_biases(module: Module, layer: TensorOp, made: Array) -> float | None:
    """How many times larger than its biases the sums of products in what a layer made are; None without biases."""
    biases = _value(module, {}, layer.operands[2]).astype(np.float64)
    sums = [made[:, channel].astype(np.float64) - bias for channel, bias in enumerate(biases)]
    size = float(np.median(np.abs(biases)))
    return float(np.median([np.sqrt((each**2).mean()) for each in sums])) / size if size else None


def ahead_of(value: Value) -> list[TensorOp] | None:
    """The ops that make `value`, weights left out, in order; None when one of them may not lie there."""
    if value.op is None or is_weight(value):
        return []
    op = value.op
    if not isinstance(op, TensorOp) or not (op.affine or op.opname in _AHEAD) or op.attributes.get("activation"):
        return None
    parts = [ahead_of(operand) for operand in op.operands]
    found: dict[TensorOp, None] = {}
    for part in parts:
        if part is None:
            return None
        found.update(dict.fromkeys(part))
    return [*found, op]


def _values_of(module: Module, wanted: Value, arrays: Mapping[str, Array]) -> Array:
    """A value near the input, on the first whole batches of the samples."""
    function = module.main
    ops = ahead_of(wanted) or []
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
        results.append(_value(module, values, wanted))
    return np.concatenate(results)


def _value(module: Module, values: Mapping[Value, Array], value: Value) -> Array:
    if value.op is not None and is_weight(value):
        return module.weights[value.op.attributes["key"]]
    return values[value]


WARNING = "warning: "
"""How notes begin that are warnings."""
FEW = 16
"""Fewer samples than this are warned about."""
FAR_OFF = 20.0
"""Factor between the first layer's outputs and what its batch norm has seen in training that is warned about."""
MOST_OVER_BIASES = 100.0
"""How many times its biases what a first layer makes of pixels may be; see `pixels_over_biases`."""
_MOST_LOOKED_AT = 64
_VALUES_LOOKED_AT = 8 << 20


def data_notes(module: Module, data: Data) -> list[str]:
    """One sentence about what calibration runs on, and warnings (they begin with `WARNING`).

    Looked at: up to 64 samples, evenly spread. Warned about:
    1. fewer than 16 samples;
    2. at least half of the samples looked at are copies of others;
    3. an input of 3 channels that are the same picture in each sample (gray, whatever its scaling);
    4. the first batch norm is fed values whose distance from its mean, or whose spread, is more than 20 times larger
       than in training, or whose spread is more than 20 times smaller (its variance tells); where there is none, for
       exporters fold it into the layer before: of pixels 0..255 the first layer makes more than 100 times its biases;
    5. an input that is one number in all of them, beside others that vary: a mask of full lengths.

    Raises BMError as `check_data` does.
    """
    bound = bind_data(module.main, data)
    arrays = check_data(module.main, bound)
    samples = min(map(len, arrays.values()), default=0)
    if not samples:
        return []
    notes = [f"calibrated on {bound.description or counted(samples, 'sample')}{_layouts(bound.description, arrays)}"]
    if samples < FEW:
        notes.append(f"{WARNING}{counted(samples, 'calibration sample')} cannot show all values; 100 or more are usual")
    some = {name: some_of(array) for name, array in arrays.items()}
    return notes + [
        WARNING + text for text in (*_copies(some), *_gray(some), *_constant(some), *_first_layer(module, some))
    ]


def some_of(array: Array | Samples, most: int = _MOST_LOOKED_AT) -> Array:
    """Up to `most` samples, evenly spread."""
    size = max(1, int(np.prod(array.shape[1:])))
    count = min(len(array), most, max(1, _VALUES_LOOKED_AT // size))
    indices = np.linspace(0, len(array) - 1, count).round().astype(np.int64)
    return array.take(indices) if isinstance(array, Samples) else array[indices]


def _layouts(described: str | None, arrays: Mapping[str, Array | Samples]) -> str:
    """The layouts of image-like inputs, unless the description has told."""
    if described and ("NCHW" in described or "NHWC" in described):
        return ""
    found = {name: image_layout(tuple(array.shape)) for name, array in arrays.items()}
    texts = [f"input '{name}' is {layout.upper()}" for name, layout in found.items() if layout is not None]
    return f"; {', '.join(texts)}" if texts else ""


def _copies(arrays: Mapping[str, Array]) -> list[str]:
    count = min(map(len, arrays.values()))
    digests = {
        hashlib.sha256(b"".join(np.ascontiguousarray(array[n]).tobytes() for array in arrays.values())).digest()
        for n in range(count)
    }
    if count < 2 or 2 * len(digests) > count:
        return []
    return [f"{count - len(digests)} of {count} calibration samples looked at are copies of others"]


def _gray(arrays: Mapping[str, Array]) -> list[str]:
    texts = []
    for name, array in arrays.items():
        layout = image_layout(array.shape)
        if array.dtype.kind != "f" or layout is None or array.shape[1 if layout == "nchw" else 3] != 3:
            continue
        channels = np.moveaxis(array, 1 if layout == "nchw" else 3, 0).reshape(3, len(array), -1)
        first, second, third = map(_to_unit, channels)
        if np.allclose(first, second, atol=1e-3) and np.allclose(second, third, atol=1e-3):
            texts.append(f"the 3 channels of input '{name}' are the same picture: the samples are gray")
    return texts


def _constant(arrays: Mapping[str, Array]) -> list[str]:
    return [
        f"input '{name}' is {array.flat[0]:g} in all samples: what other values of it do was not seen"
        for name, array in arrays.items()
        if array.dtype.kind == "f" and is_constant(array)
    ]


def _to_unit(channel: Array) -> Array:
    """Each sample (row) moved and scaled to 0..1, which undoes any mean and positive scale."""
    least, most = channel.min(axis=1, keepdims=True), channel.max(axis=1, keepdims=True)
    return (channel - least) / np.maximum(most - least, np.finfo(np.float32).tiny)


def _first_layer(module: Module, arrays: Mapping[str, Array]) -> list[str]:
    norm = first_batch_norm(module)
    said = _far_from_biases(module, arrays) if norm is None else _far_from_training(module, norm, arrays)
    return [f"{said}: check range, mean and scale of the samples"] if said else []


def _far_from_training(module: Module, norm: Operation, arrays: Mapping[str, Array]) -> str:
    found = first_layer_ratio(module, norm, arrays)
    if found is None:
        return ""
    distance, spread = found
    if 1 / FAR_OFF <= spread <= FAR_OFF and distance <= FAR_OFF:
        return ""
    if spread > FAR_OFF or distance > FAR_OFF:
        far = f"{max(spread, distance):,.0f} times further from the mean"
    else:
        far = f"{1 / max(spread, 1e-9):,.0f} times closer together"
    return f"the values at batch norm '{norm.label}' are {far} than in training"


def _far_from_biases(module: Module, arrays: Mapping[str, Array]) -> str:
    layer = first_biased_layer(module)
    times = None if layer is None else pixels_over_biases(module, layer, arrays)
    if layer is None or times is None or times <= MOST_OVER_BIASES:
        return ""
    return (
        f"of pixels 0..255 layer '{layer.label}' makes {times:,.0f} times its biases, as if it had been trained on "
        "0..1 or -1..1"
    )
