"""Random ONNX graphs of supported ops with legal attributes, as Hypothesis strategies: failures shrink to a few nodes.

A step takes a tensor that exists, adds a node or two, and gives the new tensors. Steps that jump (floor, argmax,
comparison) only read tensors that no rounding has touched (`Tensor.exact`), or equal results could not be expected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper, numpy_helper

LARGEST = 3000
"""Elements; steps that enlarge a tensor leave larger ones alone."""
OPSETS = (11, 13, 17, 18, 21)


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple[int, ...]
    exact: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclass
class Graph:
    """A graph being built; `draw` is Hypothesis's."""

    draw: Any
    opset: int
    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    made: int = 0

    # -- choices --------------------------------------------------------------------------------------------------
    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def maybe(self) -> bool:
        return bool(self.draw(st.booleans()))

    def axis(self, x: Tensor) -> int:
        """Any axis, counted from either end."""
        return self.number(-x.rank, x.rank - 1)

    def axes(self, x: Tensor, least: int = 1) -> list[int]:
        chosen = self.draw(st.sets(st.integers(0, x.rank - 1), min_size=least))
        return sorted(chosen)

    # -- parts ----------------------------------------------------------------------------------------------------
    def name(self) -> str:
        self.made += 1
        return f"t{self.made}"

    def constant(self, array: Any) -> str:
        """An initializer or a Constant node."""
        name, tensor = self.name(), numpy_helper.from_array(np.asarray(array))
        if self.maybe():
            tensor.name = name
            self.constants.append(tensor)
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.asarray(values, np.int64))

    def weights(self, *shape: int, fan_in: int = 1) -> str:
        return self.constant(self.normal(*shape) / np.float32(np.sqrt(fan_in)))

    def normal(self, *shape: int) -> Any:
        return self.random.standard_normal(shape).astype(np.float32)

    def positive(self, *shape: int) -> str:
        return self.constant(self.random.uniform(0.5, 2.0, shape).astype(np.float32))

    def many(
        self, op: str, operands: Sequence[str], shapes: Sequence[Sequence[int]], **attributes: Any
    ) -> list[Tensor]:
        made = [Tensor(self.name(), tuple(int(d) for d in shape)) for shape in shapes]
        self.nodes.append(helper.make_node(op, list(operands), [t.name for t in made], **attributes))
        return made

    def add(self, op: str, operands: Sequence[str], shape: Sequence[int], **attributes: Any) -> Tensor:
        return self.many(op, operands, [shape], **attributes)[0]

    def model(self) -> onnx.ModelProto:
        """Tensors that nothing reads are the outputs."""
        read = {name for node in self.nodes for name in node.input}
        ends = [t for t in self.tensors if t.name not in read and t not in self.inputs]
        values = [[helper.make_tensor_value_info(t.name, 1, t.shape) for t in group] for group in (self.inputs, ends)]
        graph = helper.make_graph(self.nodes, "random", values[0], values[1], self.constants)
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


Step = Callable[[Graph, Tensor], "Tensor | list[Tensor] | None"]
"""None: the tensor does not suit this step."""
STEPS: list[Step] = []
IMAGE_STEPS: list[Step] = []
"""Steps for tensors (N, C, H, W)."""


def step(weight: int = 1, *, image: bool = False) -> Callable[[Step], Step]:
    def register(function: Step) -> Step:
        (IMAGE_STEPS if image else STEPS).extend([function] * weight)
        return function

    return register


def load_steps() -> None:
    import random_shape_steps  # noqa: F401
    import random_steps  # noqa: F401


@dataclass
class Case:
    model: onnx.ModelProto
    feeds: dict[str, Any]
    samples: dict[str, Any]
    """Several samples of each input, on axis 0, for calibration."""

    def __repr__(self) -> str:
        text = onnx.printer.to_text(self.model)
        return f"{text}\nfeeds: { ({n: a.shape for n, a in self.feeds.items()}) }"


@st.composite
def cases(draw: Any, least: int = 3, most: int = 15) -> Case:
    graph = Graph(draw, draw(st.sampled_from(OPSETS)), np.random.default_rng(draw(st.integers(0, 1000))))
    for _ in range(draw(st.integers(1, 2))):
        shape = draw(st.one_of(_IMAGE, _IMAGE, _SEQUENCE, _VECTOR))
        graph.inputs.append(Tensor(graph.name(), tuple(shape), exact=True))
    graph.tensors += graph.inputs
    load_steps()
    for _ in range(draw(st.integers(least, most))):
        while True:
            images = [t for t in graph.tensors if t.rank == 4]
            if images and draw(st.booleans()):
                x, choices = draw(st.sampled_from(images[-3:])), IMAGE_STEPS
            else:
                x, choices = draw(st.sampled_from(graph.tensors)), STEPS
            result = draw(st.sampled_from(choices))(graph, x)
            if result is not None:
                break
        graph.tensors += result if isinstance(result, list) else [result]
    samples = {t.name: graph.normal(4 * t.shape[0], *t.shape[1:]) for t in graph.inputs}
    feeds = {t.name: samples[t.name][: t.shape[0]] for t in graph.inputs}
    return Case(graph.model(), feeds, samples)


_IMAGE = st.tuples(st.integers(1, 2), st.sampled_from((1, 2, 3, 4, 6, 8)), st.integers(2, 9), st.integers(2, 9))
_SEQUENCE = st.tuples(st.integers(1, 2), st.integers(1, 6), st.integers(2, 8))
_VECTOR = st.tuples(st.integers(1, 3), st.integers(1, 12))
