"""The camera's bytes as the input of a network: what the host did with pixels becomes the first layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.inputs.images import ImageSamples
from bmcompiler.inputs.placing import Size, seen_of_camera
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.options import PIXELS, ModuleOptions, Preprocessing, numbers_of
from bmcompiler.spelling import spelled

Given = TypeVar("Given", bound=Preprocessing)
Part = tuple[int, int, int, int]
"""First row, first column, rows, columns."""
Options_ = TypeVar("Options_", bound=ModuleOptions)


def pixels_of(given: Given, pixels: str) -> Given:
    """How pictures become the input of a network whose first layers do the rest; `pixels`: one of `options.PIXELS`."""
    order, layout = given.channel_order, given.layout
    if pixels != PIXELS[0]:
        order, layout = pixels.split("-")
    return replace(given, mean=0.0, scale=None, std=None, channel_order=order, layout=layout)


def fuse(module: Module, given: Preprocessing, pixels: str) -> Preprocessing:
    """Let a network with one float input take bytes of pictures. Returns what is left to do before.

    1. The input has bytes, in the order and layout of `pixels`, and the camera's size, or that pictures are scaled to.
    2. What the network does not see is cut off, the nearest pixels are taken where that is asked for, and the layout
       becomes the network's: of bytes. Else pictures of a camera are scaled as floats (`_scaled`).
    3. Another order of channels is one of the weights, where all that reads the input are convolutions; else of bytes.
    4. Bytes become floats, times scale minus mean times scale. That stays a layer of its own where there is a mean: a
       convolution behind it pads with what it padded with before.

    Raises UsageError for a network with several inputs, or whose input takes no floats; as `ImageSamples` besides.
    """
    function = module.main
    name, argument = _only_input(module)
    wanted = ImageSamples([], replace(given, camera=None, camera_nearest=False), _Shown(name, argument.shape))
    left = pixels_of(replace(given, layout=wanted.layout), pixels)
    view = _view(given, wanted)
    if view.taken != wanted.size:
        left = replace(left, cut=wanted.size)
    axis = 1 if wanted.layout == "nchw" else 3
    readers = list(argument.uses)
    b = Builder.new("camera")
    (height, width), batch = view.taken, argument.shape[0]
    sizes = {"nchw": (batch, wanted.channels, height, width), "nhwc": (batch, height, width, wanted.channels)}
    argument.type = TensorType(sizes[left.layout], "u8")
    x = _cut(b, argument, view.part, left.layout)
    if left.layout != wanted.layout:
        x = b.permute(x, order=(0, 3, 1, 2) if left.layout == "nhwc" else (0, 2, 3, 1))
    if given.camera_nearest:
        x = _scaled(b, x, view.scaled, wanted.layout, nearest=True)
    flipped = left.channel_order != given.channel_order and wanted.channels == 3
    convs = [op for op, index in readers if isinstance(op, Conv) and index == 0 and op.group == 1 and axis == 1]
    kernels = [producer for op in convs if (producer := op.weight.op) is not None and is_weight(op.weight)]
    by_weights = flipped and len(kernels) == len(readers)
    if flipped and not by_weights:
        x = _reversed(b, x, axis)
    mean, scale = wanted.mean.astype(np.float64), wanted.scale.astype(np.float64)
    if by_weights:
        mean, scale = mean[::-1], scale[::-1]
        for conv, kernel in zip(convs, kernels):
            array = module.weights[kernel.attributes["key"]][:, ::-1]
            conv.set_operand(1, _weight(b, module, array, f"{name}.weight"))
    x = b.cast(x, dtype="f32")
    if given.camera is not None:
        x = x if given.camera_nearest else _scaled(b, x, view.scaled, wanted.layout, given.letterbox is None)
        x = _framed(b, x, given, wanted, view.corner)
    factors = _weight(b, module, scale, f"{name}.scale")
    shift = _weight(b, module, -mean * scale, f"{name}.shift") if mean.any() else None
    x = b.scale(x, factors, shift, axis=axis)
    for op, index in readers:
        op.set_operand(index, x)
    first = function.ops[0]
    for made in b.function.ops:
        function.body.insert_before(first, made)
    return left


def fused(
    readers: Sequence[Callable[[], Module]], options: Options_
) -> tuple[list[Callable[[], Module]], Options_, Preprocessing]:
    """Readers of networks that take bytes, the options of their compilation, and what the model says of pictures."""
    given, pixels = options.preprocess or options.images or Preprocessing(), str(options.fuse_preprocess)
    found: list[Callable[[], Module]] = [partial(_read, read, given, pixels) for read in readers]
    left = fuse(readers[0](), given, pixels)
    images = options.images and replace(pixels_of(options.images, pixels), camera=left.camera, cut=left.cut)
    return found, replace(options, images=images), left


def _read(read: Callable[[], Module], given: Preprocessing, pixels: str) -> Module:
    module = read()
    fuse(module, given, pixels)
    return module


class _Shown:
    """An input by name and shape."""

    def __init__(self, name: str, shape: Sequence[int]) -> None:
        self.name, self.shape = name, tuple(shape)


def _only_input(module: Module) -> tuple[str, Value]:
    arguments, what = module.main.arguments, spelled("fuse_preprocess")
    if len(arguments) != 1:
        raise UsageError(f"{what} is for networks with one input, this one has {len(arguments)}")
    name = module.main.input_names[0]
    if arguments[0].dtype != "f32":
        raise UsageError(f"{what} is for networks that take floats, input '{name}' takes {arguments[0].dtype}")
    return name, arguments[0]


def _weight(b: Builder, module: Module, array: np.ndarray, name: str) -> Value:
    key = module.weights.add(name, np.ascontiguousarray(array, np.float32))
    return b.create("weight", [], {"key": key}, [TensorType(array.shape)]).result


@dataclass(frozen=True)
class _View:
    """Pictures of size `taken`; a part of them has size `scaled` in the network's input, from `corner` on."""

    taken: Size
    part: Part
    scaled: Size
    corner: Size = (0, 0)


def _view(given: Preprocessing, wanted: ImageSamples) -> _View:
    if given.camera is None:  # of an odd border the smaller half is above and left
        (height, width), (rows, columns) = wanted.resize, wanted.size
        return _View(wanted.resize, ((height - rows) // 2, (width - columns) // 2, rows, columns), wanted.size)
    part, place = seen_of_camera(given, given.camera, wanted.size)
    if given.letterbox is None:
        return _View(given.camera, part, wanted.size)
    scaled = round(place.scaled[0]), round(place.scaled[1])
    return _View(given.camera, part, scaled, (int(place.top), int(place.left)))


def _cut(b: Builder, x: Value, part: Part, layout: str) -> Value:
    """Some rows and columns."""
    first = layout.index("h")
    starts, ends = [0] * 4, list(x.shape)
    for axis, (start, size) in enumerate(zip(part[:2], part[2:]), first):
        starts[axis], ends[axis] = start, start + size
    return x if ends == list(x.shape) and not any(starts) else b.slice(x, starts=starts, ends=ends, steps=[1] * 4)


def _scaled(b: Builder, x: Value, size: Size, layout: str, whole: bool = False, nearest: bool = False) -> Value:
    """Pixels scaled as the host does (`placing`): over all pixels, or between the two nearest; or those nearest."""
    first = layout.index("h")
    sizes = [*x.shape[:first], *size, *x.shape[first + 2 :]]
    if sizes == list(x.shape):
        return x
    scales = [want / have for want, have in zip(sizes, x.shape)]
    if nearest:  # the pixel in which the middle of a larger one lies
        return b.resize(x, sizes=sizes, scales=scales, mode="nearest", rounding="round_prefer_ceil")
    return b.resize(x, sizes=sizes, scales=scales, mode="linear", antialias=whole, exclude_outside=whole)


def _framed(b: Builder, x: Value, given: Preprocessing, wanted: ImageSamples, corner: tuple[int, int]) -> Value:
    """A letterbox around pixels; others have the input's size."""
    first = wanted.layout.index("h")
    pads = [0] * 8
    for axis, (start, size) in enumerate(zip(corner, wanted.size), first):
        pads[2 * axis : 2 * axis + 2] = start, size - start - x.shape[axis]
    if given.letterbox is None or not any(pads):
        return x
    fill = set(numbers_of(given.letterbox))
    if len(fill) > 1:
        raise UsageError(f"with {spelled('camera')}, {spelled('letterbox')} must be one number for all channels")
    return b.pad(x, pads=pads, value=fill.pop())


def _reversed(b: Builder, x: Value, axis: int) -> Value:
    parts = []
    for channel in reversed(range(x.shape[axis])):
        starts, ends = [0] * 4, list(x.shape)
        starts[axis], ends[axis] = channel, channel + 1
        parts.append(b.slice(x, starts=starts, ends=ends, steps=[1] * 4))
    return b.concat(*parts, axis=axis)
