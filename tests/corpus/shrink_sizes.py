"""Shrinks what a failing network computes on: one sample instead of many, smaller pictures, fewer channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import onnx
from onnx import numpy_helper

from .graph import ORT_ERRORS, run_onnx
from .shrink import Sample
from .sizes import inferred, resized, scaled, shapes_of

_SCALES = (((1, 1), (4, 4)), ((1, 1), (2, 2)), ((1, 1), (2, 1)), ((1, 1), (1, 2)), ((3, 3), (4, 4)))
_NUMBERS, _KINDS = 97, ("Reshape", "Resize", "Expand", "Split", "Slice", "Concat", "Pad")


def smaller(sample: Sample, fails: Callable[[Sample], bool], tries: int = 80) -> Sample:
    """The smallest sample found that still fails, with the same nodes."""
    progress = True
    while progress and tries > 0:
        progress = False
        for candidate in _candidates(sample):
            tries -= 1
            if fails(candidate):
                sample, progress = candidate, True
                break
            if tries <= 0:
                break
    return sample


def _candidates(sample: Sample) -> Iterator[Sample]:
    """Smaller ones, those that save most at first."""
    for made in _made(sample):
        if made is not None and _runs(made):
            yield made


def _runs(sample: Sample) -> bool:
    """Whether ONNX Runtime takes a network: shape inference does not ask whether windows have as many channels."""
    try:
        run_onnx(sample.model, sample.batch)
    except ORT_ERRORS:
        return False
    return True


def _made(sample: Sample) -> Iterator[Sample | None]:
    shapes = shapes_of(sample.model)
    batches = {shape[0] for shape in shapes.values()}
    if len(batches) == 1 and batches != {1}:
        yield resized(sample, {name: (1, *shape[1:]) for name, shape in shapes.items()})
    for up, down in _SCALES:
        yield _if_smaller(sample, scaled(sample, up, down))
    for name, shape in shapes.items():
        if len(shape) == 3 and shape[2] > 1:
            yield resized(sample, shapes | {name: (*shape[:2], shape[2] // 2)})
    numbers = _channels(sample.model)
    yield renumbered(sample, {number: number // 2 for number in numbers if number % 2 == 0})
    for number in numbers:
        for fewer in dict.fromkeys((1, 2, number // 4, number // 2, number - 1)):
            if 0 < fewer < number:
                yield renumbered(sample, {number: fewer})
    yield _plain(sample)


def _if_smaller(sample: Sample, made: Sample | None) -> Sample | None:
    if made is None or shapes_of(made.model) == shapes_of(sample.model):
        return None
    return made


def _channels(model: onnx.ModelProto) -> list[int]:
    """Sizes of inputs (not of their batch) and of weights, the largest first."""
    found = {size for shape in shapes_of(model).values() for size in shape[1:2] + shape[-1:]}
    for each in model.graph.initializer:
        if each.data_type == onnx.TensorProto.FLOAT:
            found |= set(each.dims[:2] if len(each.dims) > 2 else each.dims)
    return sorted(found - {0, 1}, reverse=True)


def renumbered(sample: Sample, sizes: Mapping[int, int]) -> Sample | None:
    """The network with other counts of channels: each number of `sizes` becomes another wherever it is one.

    None where the result is no network: then the number meant several things.
    """
    model = onnx.ModelProto()
    model.CopyFrom(sample.model)
    graph, old = model.graph, shapes_of(sample.model)
    for info in graph.input:
        for dim in info.type.tensor_type.shape.dim[1:]:
            dim.dim_value = sizes.get(dim.dim_value, dim.dim_value)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "group":
                attribute.i = sizes.get(attribute.i, attribute.i)
    shaping = {name for node in graph.node if node.op_type in _KINDS for name in node.input[1:]}
    for each in graph.initializer:
        each.CopyFrom(numpy_helper.from_array(_fewer(each, sizes, each.name in shaping), each.name))
    if inferred(model) is None:
        return None
    new = shapes_of(model)
    data = {
        name: np.ascontiguousarray(value[(slice(None), *(slice(size) for size in new[name][1:]))])
        for name, value in sample.data.items()
    }
    return Sample(model, data) if new != old or len(model.SerializeToString()) < _length(sample) else None


def _length(sample: Sample) -> int:
    return len(sample.model.SerializeToString())


def _fewer(stored: onnx.TensorProto, sizes: Mapping[int, int], shaping: bool) -> np.ndarray:
    """A constant with fewer channels; windows of convolutions keep their size."""
    value = numpy_helper.to_array(stored)
    if value.dtype == np.int64:
        return np.vectorize(lambda n: sizes.get(n, n), otypes=[np.int64])(value) if shaping and value.size else value
    axes = value.shape[:2] if value.ndim > 2 else value.shape
    return np.ascontiguousarray(value[tuple(slice(sizes.get(size, size)) for size in axes)])


def _plain(sample: Sample) -> Sample | None:
    """Samples of few numbers, again and again: they are written in few bytes."""
    large = {name for name, value in sample.data.items() if value.size > 4096 and value.dtype == np.float32}
    data = {name: np.resize(v.ravel()[:_NUMBERS], v.shape) if name in large else v for name, v in sample.data.items()}
    if all((data[name] == sample.data[name]).all() for name in large):
        return None
    return replace(sample, data=data)
