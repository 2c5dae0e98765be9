"""Shrinks a failing network to the fewest nodes: parts between tensors whose values are recorded become networks.

`shrink_sizes` makes its tensors small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .graph import run_onnx, value_info

Data = dict[str, np.ndarray]
_MEMORY = 1 << 30
"""Bytes that the recorded values of all tensors may take."""


@dataclass(frozen=True)
class Sample:
    """A network with the values that its inputs have: two batches, the second for calibration only."""

    model: onnx.ModelProto
    data: Data

    @property
    def batch(self) -> Data:
        """The first batch."""
        return {i.name: self.data[i.name][: i.type.tensor_type.shape.dim[0].dim_value] for i in self.model.graph.input}


def recorded(sample: Sample) -> Sample | None:
    """The sample with the values of all tensors for both batches, of the first alone where their lengths differ."""
    halves: list[Data] = []
    model = onnx.ModelProto()
    model.CopyFrom(sample.model)
    names = [name for node in model.graph.node for name in node.output if name]
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    first = sample.batch
    for half in (first, {name: sample.data[name][len(value) :] for name, value in first.items()}):
        halves.append(half | dict(zip(names, run_onnx(model, half))))
    one, two = halves
    return replace(sample, data={k: np.stack([v, two[k] if two[k].shape == v.shape else v]) for k, v in one.items()})


def _recorded_bytes(model: onnx.ModelProto) -> int:
    """Of all tensors whose shapes are known, for two batches, twice while they are joined."""
    infos = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.value_info
    return sum(16 * prod(dim.dim_value for dim in info.type.tensor_type.shape.dim) for info in infos)


def part(sample: Sample, whole: Sample, kept: list[int]) -> Sample | None:
    """The network of some nodes: what comes from others is an input, what others or nobody reads an output.

    Args:
        whole: gives the values of tensors (`recorded`), with both batches on axis 0.
    """
    graph = sample.model.graph
    nodes = [graph.node[i] for i in kept]
    made = {name for node in nodes for name in node.output if name}
    fixed = {each.name: each for each in graph.initializer}
    read = {name for node in nodes for name in node.input if name}
    outside = {name for i, node in enumerate(graph.node) if i not in set(kept) for name in node.input}
    outside |= {out.name for out in graph.output}
    inputs = sorted(read - made - set(fixed))
    outputs = [name for node in nodes for name in node.output if name and (name in outside or name not in read)]
    constants = [fixed[name] for name in sorted(read & set(fixed))]
    for name in list(inputs):
        if whole.data[name].dtype != np.float32:  # a shape, a mask: computed no more
            constants.append(numpy_helper.from_array(whole.data[name][0], name))
            inputs.remove(name)
    if not inputs or any(whole.data[name][0].ndim == 0 for name in inputs) or not outputs:
        return None
    infos = [[value_info(name, whole.data[name][0]) for name in names] for names in (inputs, outputs)]
    model = helper.make_model(
        helper.make_graph(nodes, "shrunk", *infos, constants),
        opset_imports=sample.model.opset_import,
        ir_version=sample.model.ir_version,
    )
    return Sample(model, {name: np.concatenate(whole.data[name]) for name in inputs})


def _cuts(count: int) -> Iterator[list[int]]:
    """Nodes to keep: halves and runs without a smaller and smaller part."""
    size = max(count // 2, 1)
    while count > 1:
        for start in range(0, count, size):
            left = [i for i in range(count) if not start <= i < start + size]
            if left:
                yield left
        if size == 1:
            return
        size = max(size // 2, 1)


def shrunk(sample: Sample, fails: Callable[[Sample], bool], tries: int = 120) -> Sample:
    """The smallest sample found that still fails: nodes go while it does. One of very large tensors stays as it is."""
    if _recorded_bytes(sample.model) > _MEMORY:
        return sample
    whole, left = recorded(sample), tries
    assert whole is not None
    progress = True
    while progress and left > 0:
        progress = False
        for kept in _cuts(len(sample.model.graph.node)):
            fewer = part(sample, whole, kept)
            if fewer is None:
                continue
            left -= 1
            if fails(fewer):
                sample, progress = fewer, True
                break
            if left <= 0:
                break
    return sample
