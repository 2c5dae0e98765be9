"""Networks in other sizes: batch and pictures, with the shapes that stand in their constants."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

from .shrink import Sample

Shape = tuple[int, ...]
_SHAPED = {"Reshape": 1, "Resize": 3, "Expand": 1}
"""The operand that holds a shape."""


def known_tensors(model: onnx.ModelProto, strict: bool = False) -> dict[str, tuple[int, Shape]]:
    """Types and shapes of all tensors, as far as known. Raises what onnx does where `strict` and one is none."""
    graph = shape_inference.infer_shapes(model, check_type=strict, strict_mode=strict, data_prop=True).graph
    found = {}
    for info in (*graph.input, *graph.value_info, *graph.output):
        kind = info.type.tensor_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            found[info.name] = kind.elem_type, tuple(dim.dim_value for dim in kind.shape.dim)
    return found | {each.name: (each.data_type, tuple(each.dims)) for each in graph.initializer}


def known_shapes(model: onnx.ModelProto, strict: bool = False) -> dict[str, Shape]:
    """Shapes of all tensors, as `known_tensors` gives them."""
    return {name: shape for name, (_, shape) in known_tensors(model, strict).items()}


def resized(sample: Sample, shapes: dict[str, Shape]) -> Sample | None:
    """The network for inputs of other shapes, with values cut or mirrored; None where constants do not allow it."""
    model = onnx.ModelProto()
    model.CopyFrom(sample.model)
    before = shapes_of(sample.model)
    shapes = before | shapes
    for info in model.graph.input:
        for dim, size in zip(info.type.tensor_type.shape.dim, shapes[info.name]):
            dim.dim_value = size
    made = inferred(model) if _constants_fitted(sample.model, model) else None
    if made is None:
        return None
    _drop_unread(made.graph)
    return Sample(made, {name: _fitted(value, before[name], shapes[name]) for name, value in sample.data.items()})


def inferred(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """The network with shapes of outputs that follow from those of its inputs; None where a node forbids them."""
    kinds = {out.name: out.type.tensor_type.elem_type for out in model.graph.output}
    _forget_shapes(model)
    try:
        shapes = known_shapes(model, strict=True)
    except (shape_inference.InferenceError, onnx.checker.ValidationError):
        return None
    if any(0 in shape for shape in shapes.values()) or not all(name in shapes for name in kinds):
        return None
    if not all(_channels_fit(node, shapes) for node in model.graph.node):
        return None
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(name, kind, shapes[name]) for name, kind in kinds.items())
    return model


def _channels_fit(node: onnx.NodeProto, shapes: dict[str, Shape]) -> bool:
    """Whether the groups of a convolution, which may stand for images, are those of its kernels: nothing infers it."""
    if node.op_type != "Conv" or not all(name in shapes for name in node.input[:2]):
        return True
    groups = next((each.i for each in node.attribute if each.name == "group"), 1)
    return shapes[node.input[0]][1] == shapes[node.input[1]][1] * groups


def _forget_shapes(model: onnx.ModelProto) -> None:
    graph = model.graph
    outputs = [helper.make_tensor_value_info(out.name, out.type.tensor_type.elem_type, None) for out in graph.output]
    del graph.value_info[:], graph.output[:]
    graph.output.extend(outputs)


def _constants_fitted(own: onnx.ModelProto, model: onnx.ModelProto) -> bool:
    """Give constants that are shapes the numbers that fit the new shapes of inputs; False where there are none."""
    before, fixed = known_shapes(own), {each.name: numpy_helper.to_array(each) for each in own.graph.initializer}
    batches = tuple(model.graph.input[0].type.tensor_type.shape.dim[0].dim_value for model in (own, model))
    _forget_shapes(model)
    after = known_shapes(model)
    joined = {node.output[0]: node for node in model.graph.node if node.op_type == "Concat"}
    for number, node in enumerate(model.graph.node):
        at = _SHAPED.get(node.op_type, len(node.input))
        if at >= len(node.input) or node.output[0] not in before:
            continue
        holder = node
        if node.op_type == "Resize" and node.input[at] in joined:  # batch and channels are read from the map
            holder, at = joined[node.input[at]], -1
        if holder.input[at] not in fixed:
            continue
        source, said = node.input[0], fixed[holder.input[at]]
        if source not in fixed and not (source in before and source in after):
            return False
        olds = before.get(source, ())
        whole, free = before[node.output[0]], next((i for i, size in enumerate(said) if size == -1), -1)
        new = _new_shape(node.op_type, olds, whole, after.get(source, ()), batches, source in fixed, free)
        if new is None:
            return False
        value = np.array([old if old <= 0 else size for old, size in zip(said, new[-len(said) :])], said.dtype)
        if list(value) != list(said):
            holder.input[at] = f"{holder.input[at]}_{number}"
            model.graph.initializer.append(numpy_helper.from_array(value, holder.input[at]))
            after = known_shapes(model)
    return True


def _new_shape(
    kind: str, old: Shape, result: Shape, new: Shape, batches: tuple[int, ...], is_constant: bool, free: int
) -> list[int] | None:
    """What a shape `result` becomes where what is shaped was `old` and is `new`; None where it cannot be said."""
    if is_constant:
        return [batches[1] if i == 0 and size == batches[0] else size for i, size in enumerate(result)]
    if kind == "Resize":
        return [size * after // before for before, size, after in zip(old, result, new)]
    return _split(old, result, new, free)


def _drop_unread(graph: onnx.GraphProto) -> None:
    read = {name for node in graph.node for name in node.input}
    kept = [each for each in graph.initializer if each.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _split(old: Shape, result: Shape, new: Shape, free: int) -> list[int] | None:
    """What a reshape of `old` to `result` becomes for `new`: in each run of axes of one product, one axis changes.

    It is `free` where that is in the run: the axis that the network leaves open.
    """
    i = j = 0
    made: list[int] = []
    while i < len(old) or j < len(result):
        first, second = i, j
        i, j = min(i + 1, len(old)), min(j + 1, len(result))
        while prod(old[first:i]) != prod(result[second:j]) or (i == first and j < len(result)):
            if i < len(old) and (prod(old[first:i]) < prod(result[second:j]) or j == len(result)):
                i += 1
            elif j < len(result):
                j += 1
            else:
                return None
        axes, size, count = list(result[second:j]), prod(new[first:i]), prod(old[first:i])
        if size != count:
            if not axes:
                return None
            at = free - second if second <= free < j else next((k for k, axis in enumerate(axes) if axis > 1), 0)
            if axes[at] * size % count:
                return None
            axes[at] = axes[at] * size // count
        made += axes
    return made


def _fitted(value: np.ndarray, old: Shape, new: Shape) -> np.ndarray:
    """Both batches of an input's values, for another shape: the first of each axis, or mirrored again and again."""
    halves = value.reshape(-1, *old)
    for axis, (had, has) in enumerate(zip(old, new), 1):
        at = np.arange(has) % (2 * had)
        halves = halves.take(np.where(at < had, at, 2 * had - 1 - at), axis)
    return np.ascontiguousarray(halves.reshape(-1, *new[1:]))


def picture_axes(model: onnx.ModelProto) -> dict[str, tuple[int, int]]:
    """Rows and columns of the inputs that are pictures; channels are last where a transpose brings them forward."""
    last = {
        node.input[0]
        for node in model.graph.node
        if node.op_type == "Transpose" and list(node.attribute[0].ints) == [0, 3, 1, 2]
    }
    pictures = [each.name for each in model.graph.input if len(each.type.tensor_type.shape.dim) == 4]
    return {name: (1, 2) if name in last else (2, 3) for name in pictures}


def shapes_of(model: onnx.ModelProto) -> dict[str, Shape]:
    """Shapes of the inputs."""
    return {i.name: tuple(dim.dim_value for dim in i.type.tensor_type.shape.dim) for i in model.graph.input}


def scaled(sample: Sample, up: tuple[int, int], down: tuple[int, int] = (1, 1)) -> Sample | None:
    """The network for pictures of `up / down` times the rows and columns."""
    shapes, axes = shapes_of(sample.model), picture_axes(sample.model)
    if not axes:
        return None
    for name, places in axes.items():
        shape = list(shapes[name])
        for axis, more, less in zip(places, up, down):
            shape[axis] = shape[axis] * more // less
        shapes[name] = tuple(shape)
    return resized(sample, shapes) if all(map(all, shapes.values())) else None


def enlarged(sample: Sample, factor: int) -> Sample | None:
    """The network for pictures with `factor` times the rows and columns."""
    return scaled(sample, (factor, factor))
