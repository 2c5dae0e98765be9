"""How large the values of a network's inputs are: in the samples, or by what training left in its first layers.

A model file has it as a line among its notes, a JSON object of inputs; who runs it is warned of quite other values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bmcompiler.bmodel.layers import RANGES
from bmcompiler.bmodel.model import BModel, TensorInfo
from bmcompiler.errors import FileFormatError
from bmcompiler.inputs.advice import (
    MOST_OVER_BIASES,
    ahead_of,
    first_batch_norm,
    first_biased_layer,
    norm_ratios,
    over_biases,
    some_of,
)
from bmcompiler.inputs.images import image_layout
from bmcompiler.inputs.source import Samples
from bmcompiler.ir.keys import is_weight
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.ops.base import TensorOp

if TYPE_CHECKING:
    from bmcompiler.ir import Module, Value

_SAMPLES, _SIZE = 8, 64
_BYTES = {"int8": 127, "uint8": 255}
_ANY_SIZE = ("conv", "batch_norm", "scale", "permute", "cast", "pad", "concat")
_WITH_CONSTANTS = ("add", "sub", "mul", "div")


def in_samples(arrays: Mapping[str, Array | Samples]) -> dict[str, float]:
    """The largest magnitude of each input of floats in checked samples; few are looked at."""
    some = {name: some_of(array, _SAMPLES) for name, array in arrays.items()}
    return {name: float(np.abs(array).max()) for name, array in some.items() if array.dtype.kind == "f" and array.size}


def by_training(module: Module) -> dict[str, float]:
    """About the largest magnitude of the pictures that a network was trained on; {} where nothing tells.

    A drawn picture of 0..1 goes through the layers ahead of the first batch norm, whose variance says how many times
    larger the values were in training. Five trained networks for -1..1 give 1.4 to 6.6, one for -128..127 280. Of a
    norm that was folded, the biases that it left only tell 0..1 and -1..1 from pixels (`advice.pixels_over_biases`).
    """
    function = module.main
    argument = function.arguments[0] if len(function.arguments) == 1 else None
    layout = None if argument is None else image_layout(argument.shape)
    if argument is None or layout is None or argument.dtype != "f32":
        return {}
    norm, layer = first_batch_norm(module), first_biased_layer(module)
    wanted = norm.operands[0] if norm is not None else layer.results[0] if layer is not None else None
    channels = argument.shape[1 if layout == "nchw" else 3]
    drawn = drawn_pictures(channels)
    shown = drawn if layout == "nchw" else drawn.transpose(0, 2, 3, 1)
    made = None if wanted is None else _made(module, {argument: shown}, wanted)
    if made is None:
        return {}
    if norm is not None:
        found = norm_ratios(module, norm, made)
        return {function.input_names[0]: float(f"{1 / found[1]:.1g}")} if found and found[1] else {}
    assert layer is not None, "one of the two made something"
    times = over_biases(module, layer, made)
    return {function.input_names[0]: 1.0} if times and 255 * times > MOST_OVER_BIASES else {}


def drawn_pictures(channels: int) -> Floats:
    """(2, channels, 64, 64) of 0..1, the same on every machine: amplitudes fall with frequency as those of photos do.

    Channels have 0.96 of their deviation in common. First layers of six trained networks make 0.6 to 1.4 times as much
    of them as of a photo, those of MTCNN up to 3 times.
    """
    random = np.random.default_rng(0)
    frequency = np.hypot(np.fft.fftfreq(_SIZE)[:, None], np.fft.rfftfreq(_SIZE)[None])
    frequency[0, 0] = np.inf  # no mean
    noise = random.standard_normal((2, 1 + channels, _SIZE, _SIZE))
    fields = np.fft.irfft2(np.fft.rfft2(noise) / frequency, s=(_SIZE, _SIZE))
    fields /= fields.std(axis=(2, 3), keepdims=True)
    mixed = 0.45 + 0.21 * fields[:, :1] + 0.06 * fields[:, 1:]
    return np.asarray(mixed.clip(0, 1), np.float32)


def _made(module: Module, values: dict[Value, Array], wanted: Value) -> Array | None:
    """A value near the input, of pictures of another size than declared; None where that cannot be computed."""

    def array(value: Value) -> Array:
        known = value.op is not None and is_weight(value)
        return module.weights[value.op.attributes["key"]] if known and value.op is not None else values[value]

    for op in ahead_of(wanted) or []:
        arrays = [array(operand) for operand in op.operands]
        if not _takes(op, arrays):
            return None
        try:
            with np.errstate(all="ignore"):
                out = op.evaluate(*arrays)
        except ValueError:  # a constant, or a shape, that fits the net's own size alone
            return None
        values.update(zip(op.results, out if isinstance(out, tuple) else (out,)))
    return array(wanted)


def _takes(op: TensorOp, arrays: list[Array]) -> bool:
    """Whether an op means the same for pictures of another size."""
    if op.short_name == "slice":  # every second pixel, not a part
        return all(start < step for start, step in zip(op.attributes["starts"], op.attributes["steps"]))
    if op.short_name == "conv" and arrays[0].shape[1] != op.operands[0].shape[1]:
        return False  # the channels are not where the input's shape seemed to have them
    if op.short_name not in _WITH_CONSTANTS:
        return op.short_name in _ANY_SIZE
    shapes = [array.shape for array in arrays]
    largest = max(shapes, key=np.prod)
    return all(all(n in (1, m) for n, m in zip(shape[::-1], largest[::-1])) for shape in shapes)


def limit_of(info: TensorInfo) -> float:
    """The largest magnitude that integers of the device stand for in an input; 0 where it is not said."""
    if info.scale and info.dtype in _BYTES:
        return info.scale * _BYTES[info.dtype]
    return info.threshold


def note(model: BModel, ranges: Mapping[str, float]) -> None:
    """Let a model say it of the inputs whose integers do not."""
    inputs = {info.name: info for info in model.stages()[0].inputs}
    told = {name: value for name, value in ranges.items() if name in inputs and not limit_of(inputs[name])}
    if told:
        model.note(RANGES, encoded(told))


def encoded(ranges: Mapping[str, float]) -> str:
    """The line of a model file."""
    return json.dumps(dict(ranges), ensure_ascii=False, separators=(",", ":"))


def decoded(text: str) -> dict[str, float]:
    """What a model file says; {} where it says nothing. Raises FileFormatError for what is no such text."""
    try:
        return {name: float(value) for name, value in json.loads(text or "{}").items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FileFormatError(f"what the model says of its inputs' values is malformed ({error})") from error
