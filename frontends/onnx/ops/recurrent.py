"""RNN, GRU and LSTM."""

from __future__ import annotations

import re

import numpy as np

from bmcompiler.errors import FileFormatError, ShapeError
from bmcompiler.frontends.onnx.node import Node, choice
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import Value
from bmcompiler.ops.builder import Builder

# what ONNX counts per op: gates, and activations per direction
_GATES = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}
_DIRECTIONS = ("forward", "reverse", "bidirectional")
_KNOWN = {
    "relu", "tanh", "sigmoid", "affine", "leaky_relu", "thresholded_relu", "scaled_tanh", "hard_sigmoid", "elu",
    "softsign", "softplus",
}  # fmt: skip
_WITH_ALPHA = ("affine", "leaky_relu", "thresholded_relu", "scaled_tanh", "hard_sigmoid", "elu")
_WITH_BETA = ("affine", "scaled_tanh", "hard_sigmoid")
_DEFAULTS = {
    "affine": (1.0, 0.0),
    "leaky_relu": (0.01, 0.0),
    "thresholded_relu": (1.0, 0.0),
    "scaled_tanh": (1.0, 1.0),
    "hard_sigmoid": (0.2, 0.5),
    "elu": (1.0, 0.0),
}


@onnx_op("RNN", "GRU", "LSTM")
def recurrent(node: Node, b: Builder) -> tuple[Value, ...]:
    """Absent bias and initial states become zeros; `layout` 1 (batch first) becomes transposes around the op."""
    return layer(node, b, node.type, node.input(1), node.input(2))


@onnx_op("DynamicQuantizeLSTM", domain="com.microsoft")
def dynamic_quantize_lstm(node: Node, b: Builder) -> tuple[Value, ...]:
    """An LSTM of the weights that the integers stand for; inputs and states are not rounded to 8 bits at each step."""
    return layer(node, b, "LSTM", *(b.weight(_real(node, *at), "weight") for at in ((1, 8), (2, 10))))


def _real(node: Node, index: int, scale: int) -> np.ndarray:
    """Constant weights (directions, inputs, gates), scaled by direction or by gate, as (directions, gates, inputs)."""
    weight, scales, zeros = (node.constant(i) for i in (index, scale, scale + 1))
    if weight.ndim != 3 or any(each.shape not in (weight.shape[:1], weight.shape[::2]) for each in (scales, zeros)):
        shapes = [list(each.shape) for each in (weight, scales, zeros)]
        raise ShapeError(f"weights (directions, inputs, gates), scales and zero points do not fit: {shapes}")
    scales, zeros = (each.reshape(len(weight), 1, -1).astype(np.float32) for each in (scales, zeros))
    return np.ascontiguousarray(((weight - zeros) * scales).transpose(0, 2, 1), np.float32)


def layer(node: Node, b: Builder, kind: str, weight: Value, recurrence: Value) -> tuple[Value, ...]:
    """A recurrent layer of a kind, whose other operands and attributes are the node's."""
    gates, _ = _GATES[kind]
    x = node.input(0)
    if {x.type.rank, weight.type.rank, recurrence.type.rank} != {3}:
        raise ShapeError(f"inputs must have 3 axes, got {[list(v.shape) for v in (x, weight, recurrence)]}")
    batch_first = node.int("layout", 0) == 1
    if batch_first:
        x = b.permute(x, order=(1, 0, 2))
    directions, hidden = recurrence.shape[0], recurrence.shape[2]
    if node.int("hidden_size", hidden) != hidden:
        raise FileFormatError(f"hidden_size {node.int('hidden_size')} does not fit weights {list(recurrence.shape)}")

    def operand(index: int, shape: tuple[int, ...], name: str) -> Value:
        if not node.has(index):
            return b.weight(np.broadcast_to(np.zeros((), x.type.numpy), shape), name)
        value = node.input(index)
        return b.permute(value, order=(1, 0, 2)) if batch_first and len(shape) == 3 else value

    state = (directions, x.shape[1], hidden)
    values = [x, weight, recurrence, operand(3, (directions, 2 * gates * hidden), "bias"), operand(5, state, "state")]
    attributes, running = _attributes(node), _running(node, b, x)
    if kind == "LSTM":
        values.append(operand(6, state, "cell"))
        if node.has(7) or running is not None:
            values.append(operand(7, (directions, 3 * hidden), "peephole"))
        attributes["input_forget"] = node.flag("input_forget")
    if kind == "GRU":
        attributes["linear_before_reset"] = node.flag("linear_before_reset")
    values += [] if running is None else [running]
    results = b.create(kind.lower(), values, attributes).results
    if not batch_first:
        return tuple(results)
    return (
        b.permute(results[0], order=(2, 0, 1, 3)),
        *(b.permute(result, order=(1, 0, 2)) for result in results[1:]),
    )


def _running(node: Node, b: Builder, x: Value) -> Value | None:
    """(T, N): 1 for the steps of each sequence, 0 behind its end; None where all take all steps."""
    steps, images, _ = x.shape
    if not node.has(4):
        return None
    if not node.is_constant(4):
        ends = b.reshape(b.cast(node.input(4), dtype="i32"), shape=(1, images))
        times = b.weight(np.arange(steps, dtype=np.int32)[:, None], "times")
        return b.cast(b.compare(ends, times, method="greater"), dtype=x.dtype)
    lengths = node.constant_ints(4) or ()
    if len(lengths) != images or not all(0 <= n <= steps for n in lengths):
        raise ShapeError(f"lengths {list(lengths)} must be {images} numbers up to {steps}")
    if min(lengths, default=steps) == steps:
        return None
    return b.weight((np.array(lengths) > np.arange(steps)[:, None]).astype(x.type.numpy), "running")


def _attributes(node: Node) -> dict[str, object]:
    attributes: dict[str, object] = {
        "direction": choice("direction", node.string("direction", "forward"), _DIRECTIONS),
        "clip": node.float("clip", 0.0),
    }
    alphas, betas = list(node.floats("activation_alpha", ())), list(node.floats("activation_beta", ()))
    if node.has_attribute("activations"):
        names = [_name(text) for text in node.strings("activations")]
        for name in names:
            choice("activation", name, sorted(_KNOWN))
        attributes["activations"] = names
        # ONNX lists alphas and betas only for the functions that have them
        attributes["alphas"] = [_next(alphas, name, _WITH_ALPHA, 0) for name in names]
        attributes["betas"] = [_next(betas, name, _WITH_BETA, 1) for name in names]
    return attributes


def _next(values: list[float], name: str, takers: tuple[str, ...], index: int) -> float:
    default = _DEFAULTS.get(name, (0.0, 0.0))[index]
    return values.pop(0) if name in takers and values else default


def _name(text: str) -> str:
    """LeakyRelu -> leaky_relu, HardSigmoid -> hard_sigmoid."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower()
