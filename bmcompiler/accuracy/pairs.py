"""A float network and its quantized form side by side, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bmcompiler.interpreter import evaluate_op
from bmcompiler.ir import Function, Module, Operation, TensorType, Value
from bmcompiler.ir.copying import copy_module
from bmcompiler.ir.keys import TENSOR_NAME, is_weight
from bmcompiler.numeric import quant_modes
from bmcompiler.numeric.arrays import Array
from bmcompiler.passmanager import PassContext, Pipeline, run_pipeline
from bmcompiler.proof.sample import device_values
from bmcompiler.target import Target

_LAYOUT = (
    *("fill-image-slots", "move-bands", "join-groups", "split-deconv", "join-siblings", "split-heads"),
    "transposed-products",
    *("split-means", "merge-shortcuts", "join-upsamples", "lane-bands"),
    *("fill-lanes", "window-products", "keep-phases", "cut-inputs", "group-layers"),
)
"""Passes that change how the numbers are computed, not the numbers: what they make has no counterpart in float."""


@dataclass
class Layer:
    """A tensor that both networks have.

    Attributes:
        name: of the tensor in the source. real, compiled: where it is made.
        ops: ops of the quantized network that make it from `reads`, which are tensors of both, inputs or constants.
        real_ops: ops of the float network that do the same.
    """

    name: str
    real: Value
    compiled: Value
    ops: list[Operation] = field(default_factory=list)
    reads: list[Value] = field(default_factory=list)
    real_ops: list[Operation] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The float op."""
        return "input" if self.real.op is None else self.real.op.short_name


@dataclass
class Pair:
    """Both networks, and the layers in the order of the float one."""

    real: Module
    compiled: Module
    target: Target
    layers: list[Layer]


def make_pair(module: Module, target: Target, pipeline: Pipeline, ctx: PassContext) -> Pair:
    """Run the pipeline up to the network of fewer bits.

    Args:
        module: the network as imported; it becomes the float one, calibrated where the pipeline does that.
        ctx: with data or a table.

    Raises BMError as the passes do.
    """
    passes = [each for each in pipeline.passes if each.name not in _LAYOUT]
    border = next((at for at, each in enumerate(passes) if each.loses_bits), len(passes))
    run_pipeline(module, Pipeline(tuple(passes[:border])), ctx)
    compiled = copy_module(module)
    run_pipeline(compiled, Pipeline(tuple(passes[border:])), ctx)
    return paired(module, compiled, target)


def paired(real: Module, compiled: Module, target: Target) -> Pair:
    """A calibrated network and what the passes made of a copy of it."""
    return Pair(real, compiled, target, _layers(real.main, compiled.main))


def tensor_names(function: Function) -> dict[str, Value]:
    """Source tensor name -> the last value that holds it."""
    found = dict(zip(function.input_names, function.arguments))
    for op in function.ops[:-1]:
        sources = op.attributes.get(TENSOR_NAME, ())
        for result, name in zip(op.results, (sources,) if isinstance(sources, str) else sources):
            if name:
                found[name] = result
    found.update(zip(function.output_names, function.returned))
    return found


def _layers(real: Function, compiled: Function) -> list[Layer]:
    copies = tensor_names(compiled)
    shared = {
        name: value
        for name, value in tensor_names(real).items()
        if name in copies and value.type.is_float and copies[name].shape == value.shape
    }
    layers, borders, real_borders = [], {copies[each] for each in shared}, set(shared.values())
    for name, value in shared.items():
        layer = Layer(name, value, copies[name])
        layer.ops, layer.reads = _between(layer.compiled, borders)
        layer.real_ops, _ = _between(layer.real, real_borders)
        layers.append(layer)
    return layers


def _between(made: Value, borders: set[Value]) -> tuple[list[Operation], list[Value]]:
    """The ops that make a value, and what they read of inputs and `borders`."""
    ops: dict[Operation, None] = {}
    reads: dict[Value, None] = {}
    left = [] if made.op is None else [(made.op, iter(made.op.operands))]
    while left:
        op, operands = left[-1]
        for value in operands:
            if value.op is None or value in borders:
                reads[value] = None
            elif not is_weight(value) and value.op not in ops:
                left.append((value.op, iter(value.op.operands)))
                break
        else:
            ops[op] = None
            left.pop()
    return list(ops), list(reads)


def real_values(array: Array, type: TensorType) -> Array:
    """What the numbers of a quantized tensor stand for, as float32."""
    if type.quant is None or array.dtype.kind == "f":
        return np.asarray(array, np.float32)
    return quant_modes.dequantize(array, type.quant.scale, type.quant.zero_point)


def alone(pair: Pair, layer: Layer, floats: Mapping[Value, Array]) -> Array | None:
    """The layer's result when it alone is quantized, as float32; `floats`: all values of the float network.

    What it reads is rounded as the device holds it, for the quantized and the float ops alike, and their difference is
    added to the float result: rounding, cutting off and weights of this layer count, those of the layers before do not.
    None where it reads a tensor that only the quantized network has.
    """
    if layer.real.op is None:
        return real_values(device_values(floats[layer.real], layer.compiled.type), layer.compiled.type)
    twins = {each.compiled: each.real for each in pair.layers}
    if not set(layer.reads) <= twins.keys():
        return None
    device = {value: device_values(floats[twins[value]], value.type) for value in layer.reads}
    rounded = {twins[value]: real_values(array, value.type) for value, array in device.items()}
    found = _computed(pair.compiled, layer.ops, device, layer.compiled, pair.target)
    exact = _computed(pair.real, layer.real_ops, {**floats, **rounded}, layer.real, None)
    difference = np.zeros_like(exact)  # infinite numbers mean "none"
    np.subtract(real_values(found, layer.compiled.type), exact, out=difference, where=np.isfinite(exact))
    return np.asarray(floats[layer.real] + difference, np.float32)


def _computed(
    module: Module, ops: list[Operation], given: Mapping[Value, Array], wanted: Value, target: Target | None
) -> Array:
    """One value, by some ops of a network. Without ops it is among the given ones."""
    values: dict[Value, Array] = dict(given)
    for op in ops:
        arrays = [
            module.weights[v.op.attributes["key"]] if v.op is not None and is_weight(v) else values[v]
            for v in op.operands
        ]
        values.update(zip(op.results, evaluate_op(op, arrays, target)))
    return values[wanted]
