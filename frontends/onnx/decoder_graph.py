"""The graph of a language model, followed from its scores to its tokens: norms, products and constants by structure.

Names are the exporter's own and are not looked at. What only changes shape or type stands for what it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, NoReturn

import ml_dtypes
import numpy as np
import onnx

from bmcompiler.errors import BMError, FileFormatError, UnsupportedError
from bmcompiler.frontends.onnx.decoder_weights import GATHERS, codes_of, embedding_of
from bmcompiler.frontends.onnx.graph import node_name, producers
from bmcompiler.frontends.onnx.model_file import check_model, read_model
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.ops.packed_weights import weights_of
from bmcompiler.frontends.onnx.tensors import to_array
from bmcompiler.llm.linear import LinearLayer
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.packed_weights import PackedWeights

_SAME = frozenset(("Cast", "Reshape", "Identity", "Squeeze", "Unsqueeze", "Flatten"))
"""Ops whose result holds the elements of their first input."""
_NORMS = ("SimplifiedLayerNormalization", "RMSNormalization")
_ADDING_NORM = "SkipSimplifiedLayerNormalization"
_PASSED = ("Cast", "Identity")
_CODED = "DequantizeLinear"
_BF16, _BITS16 = onnx.TensorProto.BFLOAT16, onnx.TensorProto.UINT16


class Norm(NamedTuple):
    """x / root of the mean square, times factors.

    Attributes:
        factors: name of the constant. epsilon: see `rms_norm`. source: tensor x.
        terms: the two tensors that x is the sum of; none where it is no sum. adder: the node that adds them.
    """

    factors: str
    epsilon: float
    source: str
    terms: tuple[str, ...] = ()
    adder: onnx.NodeProto | None = None


class Product(NamedTuple):
    """A tensor by constant weights. bias: name of a constant that is added, "" for none."""

    node: onnx.NodeProto
    source: str
    bias: str


class DecoderGraph:
    """The nodes and constants of a model file. Raises FileFormatError, UnsupportedError, which name the file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        model, spans = read_model(file)
        self.opsets = check_model(model)
        self.graph = model.graph
        self._made = producers(self.graph)
        self._constants = {tensor.name: (tensor, spans.get(i)) for i, tensor in enumerate(self.graph.initializer)}

    def refuse(self, reason: str, node: onnx.NodeProto | None = None, remedy: str | None = None) -> NoReturn:
        """Raise UnsupportedError at a node."""
        raise UnsupportedError(
            reason,
            file=self.file,
            layer=None if node is None else node_name(node),
            kind=None if node is None else node.op_type,
            remedy=remedy or "give the folder with config.json and *.safetensors that the model was exported from",
        )

    def files(self) -> set[Path]:
        """The model file, and those its constants lie in."""
        entries = (entry for tensor, _ in self._constants.values() for entry in tensor.external_data)
        return {self.file} | {self.file.parent / entry.value for entry in entries if entry.key == "location"}

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors from here on name the file."""
        try:
            yield
        except BMError as error:
            raise error.located(file=self.file) from error.__cause__

    # -- nodes ------------------------------------------------------------------------------
    def maker(self, name: str) -> onnx.NodeProto | None:
        """The node that computes a tensor; None for inputs and constants. Shapes and types do not count."""
        return self.direct(self.origin(name))

    def direct(self, name: str) -> onnx.NodeProto | None:
        """The node whose result a tensor is; None for inputs and constants of the file."""
        return self.graph.node[self._made[name]] if name in self._made else None

    def origin(self, name: str) -> str:
        """The tensor whose elements another holds, in another shape or type."""
        node = self.direct(name)
        while node is not None and node.op_type in _SAME:
            name = node.input[0]
            node = self.direct(name)
        return name

    def is_constant(self, name: str) -> bool:
        """Whether a tensor is known now."""
        if name in self._constants:
            return True
        node = self.direct(name)
        if node is None:
            return False
        if node.op_type == _CODED:
            return all(map(self.is_constant, filter(None, node.input)))
        return node.op_type == "Constant" or (node.op_type in (*_SAME, "Transpose") and self.is_constant(node.input[0]))

    def before(self, name: str) -> Iterator[onnx.NodeProto]:
        """The node that computes a tensor, that of its first input, and so on."""
        while name in self._made:
            node = self.graph.node[self._made[name]]
            yield node
            name = node.input[0] if node.input else ""

    def is_sum(self, name: str, adder: onnx.NodeProto) -> bool:
        """Whether a tensor is what a node of `Norm.adder` adds."""
        return self.origin(name) in adder.output[slice(3, 4) if adder.op_type == _ADDING_NORM else slice(0, 1)]

    def norm(self, name: str) -> Norm | None:
        """The norm that makes a tensor, None where another node does."""
        node = self.maker(name)
        if node is None or node.op_type not in (*_NORMS, _ADDING_NORM):
            return None
        attributes = self.node(node)
        epsilon = attributes.float("epsilon", 1e-5)
        if node.op_type == _ADDING_NORM:
            if attributes.has(3):
                self.refuse("a bias of the sum is not supported", node)
            return Norm(node.input[2], epsilon, "", (node.input[0], node.input[1]), node)
        if attributes.int("axis", -1) in (0, 1):
            self.refuse("a norm of more than the last axis is not supported", node)
        source, adder = node.input[0], self.maker(node.input[0])
        if adder is not None and adder.op_type == "Add" and not any(map(self.is_constant, adder.input)):
            return Norm(node.input[1], epsilon, source, tuple(adder.input), adder)
        return Norm(node.input[1], epsilon, source)

    def product(self, name: str) -> Product | None:
        """The product with constant weights that makes a tensor, None where another node does."""
        node, bias = self.maker(name), ""
        if node is not None and node.op_type == "Add":
            known = [each for each in node.input if self.is_constant(each)]
            if len(known) != 1:
                return None
            bias = known[0]
            node = self.maker(next(each for each in node.input if each != bias))
        if node is None or node.op_type not in ("MatMul", "MatMulNBits"):
            return None
        return Product(node, node.input[0], bias)

    # -- constants --------------------------------------------------------------------------
    def constant(self, name: str) -> Array:
        """A tensor that is known now, mapped where it lies in a file of its own."""
        if name in self._constants:
            tensor, span = self._constants[name]
            if tensor.data_type != _BF16:
                return to_array(tensor, self.file.parent, span)
            bits = onnx.TensorProto()
            bits.CopyFrom(tensor)
            bits.data_type = _BITS16
            return to_array(bits, self.file.parent, span).view(ml_dtypes.bfloat16)
        node = self.direct(name)
        if node is None or not self.is_constant(name):
            self.refuse(f"'{name}' must be a constant", node)
        if node.op_type == "Constant":
            return self.node(node).array("value")
        inner = self.constant(node.input[0])
        if node.op_type == _CODED:
            return codes_of(self.node(node)).floats()
        if node.op_type == "Transpose":
            return inner.transpose(self.node(node).ints("perm", tuple(range(inner.ndim))[::-1]))
        return inner

    def choices(self, name: str) -> list[Array]:
        """What a tensor may be: a constant, or those of the branches of an If; none where it is neither."""
        if self.is_constant(name):
            return [self.constant(name)]
        node = self.direct(name)
        if node is None or node.op_type != "If":
            return []
        at = list(node.output).index(name)
        return [found for each in node.attribute for found in self._of_branch(each.g, each.g.output[at].name)]

    def _of_branch(self, branch: onnx.GraphProto, name: str) -> list[Array]:
        for node in branch.node:
            if name in node.output:
                return [self.node(node).array("value")] if node.op_type == "Constant" else []
        held = [to_array(tensor, self.file.parent) for tensor in branch.initializer if tensor.name == name]
        return held or ([self.constant(name)] if self.is_constant(name) else [])

    def rows(self, name: str) -> onnx.NodeProto | None:
        """The node that makes a tensor of rows of a constant table: what takes them, or what scales codes so taken."""
        node = self.maker(name)
        if node is None or node.op_type != _CODED:
            return node if node is not None and self._takes_rows(node, GATHERS) else None
        taker, scales = self.maker(node.input[0]), node.input[1:]
        scaled = all(self.is_constant(each) and self.constant(each).size == 1 for each in scales)
        return node if taker is not None and scaled and self._takes_rows(taker, ("Gather",)) else None

    def _takes_rows(self, node: onnx.NodeProto, kinds: tuple[str, ...]) -> bool:
        return node.op_type in kinds and self.is_constant(node.input[0])

    def table(self, node: onnx.NodeProto) -> Array:
        """The rows (vocabulary, width) that a node of `rows` takes some of."""
        if node.op_type == "Gather":
            return self.constant(node.input[0])
        if node.op_type != _CODED:
            return embedding_of(self.node(node))
        taker, whole = self.maker(node.input[0]), onnx.NodeProto()
        assert taker is not None, "as `rows` found it"
        whole.CopyFrom(node)
        whole.input[0] = taker.input[0]
        return codes_of(self.node(whole)).floats()

    def number(self, name: str) -> float:
        """A constant of one element. Raises FileFormatError for several."""
        found = self.constant(name)
        if found.size != 1:
            raise FileFormatError(f"'{name}' must be one number, got {found.size}", file=self.file)
        return float(found.reshape(-1)[0])

    def node(self, proto: onnx.NodeProto) -> Node:
        """A node with its constant inputs, large ones too; others are absent."""

        def no_value(name: str, array: np.ndarray) -> NoReturn:
            raise AssertionError("attributes and constants alone are asked for")

        tensors = [self.constant(name) if name and self.is_constant(name) else None for name in proto.input]
        return Node(proto, node_name(proto), self.opsets[""], tensors, materialize=no_value, folder=self.file.parent)

    def outputs(self, product: Product) -> int:
        """N of a product of K inputs by (N, K) weights."""
        if product.node.op_type == "MatMulNBits":
            return next((int(each.i) for each in product.node.attribute if each.name == "N"), 0)
        shape = self._shape(product.node.input[1])
        return (self._matrix(product).shape if len(shape) != 2 else shape)[1]

    def _shape(self, name: str) -> tuple[int, ...]:
        """Of weights, which are not read; () where they are no tensor of the file behind a transpose or codes."""
        turned = False
        for node in self.before(name):
            turned ^= node.op_type == "Transpose"
            name = node.input[0] if node.op_type in (*_PASSED, "Transpose", _CODED) else ""
        dims = tuple(self._constants[name][0].dims) if name in self._constants else ()
        return dims[::-1] if turned else dims

    def linear(self, product: Product) -> LinearLayer:
        """The weights of a product, (N, K)."""
        bias = self.constant(product.bias).astype(np.float32).reshape(-1) if product.bias else None
        if product.node.op_type == "MatMul":
            codes = self._codes(product)
            if codes is not None:
                return LinearLayer(codes, self._shape(product.node.input[1])[0], bias)
            matrix = self._matrix(product)
            return LinearLayer(np.ascontiguousarray(matrix.T), len(matrix), bias)
        node = self.node(product.node)
        if node.has(5):
            bias = node.constant(5).astype(np.float32)
        return LinearLayer(weights_of(node), node.int("K"), bias)

    def _codes(self, product: Product) -> PackedWeights | None:
        """The weights of a product by what a DequantizeLinear makes of constants; None of others."""
        turned = False
        for node in self.before(product.node.input[1]):
            if node.op_type == _CODED and self.is_constant(node.output[0]):
                return codes_of(self.node(node)).matrix(turned)
            if node.op_type not in (*_PASSED, "Transpose"):
                return None
            turned ^= node.op_type == "Transpose"
        return None

    def _matrix(self, product: Product) -> Array:
        name = product.node.input[1]
        if not self.is_constant(name):
            self.refuse(
                f"weights ('{name}') must be constants: floats, or codes of MatMulNBits or DequantizeLinear",
                product.node,
            )
        found = self.constant(name)
        if found.ndim != 2 or found.dtype.itemsize < 2:
            self.refuse(f"weights of shape {list(found.shape)}, {found.dtype} are not supported", product.node)
        return found
