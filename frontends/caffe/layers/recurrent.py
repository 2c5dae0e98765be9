"""RNN and LSTM, unrolled over their time steps."""

from __future__ import annotations

from math import prod
from typing import Any

from bmcompiler.frontends.caffe.layer import Layer, Results, caffe_layer
from bmcompiler.ir import Value

_MAX_STEPS = 1024


@caffe_layer("LSTM")
def lstm(layer: Layer) -> Results:
    """c = cont * f * c + i * g, h = o * tanh(c) with gates i, f, o = sigmoid and g = tanh of W x + b + V (cont * h).

    Bottoms: x (T, N, ...), cont (T, N), which is 0 where a sequence begins, maybe one that all steps share, with
    expose_hidden the first h and c. Tops: h of all steps, with expose_hidden the last h and c.
    """
    units = _units(layer)
    steps, extra, (h, c) = _inputs(layer, 2)
    x_weight, bias, *static, h_weight = _weights(layer, 4 * units, extra, [(4 * units, units)])
    moved = _transformed(layer, x_weight, bias, static, extra)
    b, outputs = layer.b, []
    for of_step, cont in zip(moved, steps):
        if h is not None:
            of_step = b.add(of_step, b.matmul(b.mul(h, cont), h_weight, transpose_right=True))
        gates, candidate = b.create("split", [of_step], {"axis": 1, "sizes": (3 * units, units)}).results
        i, f, o = b.create("split", [b.sigmoid(gates)], {"axis": 1, "sizes": (units,) * 3}).results
        fresh = b.mul(i, b.tanh(candidate))
        c = fresh if c is None else b.add(b.mul(b.mul(f, cont), c), fresh)
        h = b.mul(o, b.tanh(c))
        outputs.append(h)
    return _results(layer, outputs, [h, c])


@caffe_layer("RNN")
def rnn(layer: Layer) -> Results:
    """h = tanh(W x + b + V (cont * h)), output = tanh(U h + d); bottoms and tops as of LSTM, without c."""
    units = _units(layer)
    steps, extra, (h,) = _inputs(layer, 1)
    shapes = [(units, units), (units, units), (units,)]
    x_weight, bias, *static, h_weight, o_weight, o_bias = _weights(layer, units, extra, shapes)
    moved = _transformed(layer, x_weight, bias, static, extra)
    b, outputs = layer.b, []
    for of_step, cont in zip(moved, steps):
        if h is not None:
            of_step = b.add(of_step, b.matmul(b.mul(h, cont), h_weight, transpose_right=True))
        h = b.tanh(of_step)
        outputs.append(b.tanh(b.matmul(h, o_weight, o_bias, transpose_right=True)))
    return _results(layer, outputs, [h])


def _units(layer: Layer) -> int:
    units = int(layer.p.recurrent_param.num_output)
    if units < 1:
        raise layer.bad("states no num_output")
    return units


def _inputs(layer: Layer, states: int) -> tuple[list[Value], Value | None, list[Any]]:
    """cont (N, 1) of every step, the bottom that all steps share, and the first states (None: zeros)."""
    exposed = states if layer.p.recurrent_param.expose_hidden else 0
    layer.expect_inputs(2 + exposed, 3 + exposed)
    x, cont = layer.inputs[:2]
    if x.type.rank < 2 or cont.shape != x.shape[:2]:
        raise layer.shape_error(f"takes x (T, N, ...) and cont (T, N), got {list(x.shape)} and {list(cont.shape)}")
    time, batch = cont.shape
    if time > _MAX_STEPS:
        raise layer.unsupported(f"has {time} time steps; supported: up to {_MAX_STEPS}")
    rest = layer.inputs[2 : len(layer.inputs) - exposed]
    if rest and rest[0].shape[:1] != (batch,):
        raise layer.shape_error(f"takes a shared bottom (N, ...) of {batch} items, got {list(rest[0].shape)}")
    shape = (batch, _units(layer))
    first = [layer.reshape(value, shape) for value in layer.inputs[len(layer.inputs) - exposed :]] if exposed else []
    return (
        _by_step(layer, layer.reshape(cont, (time * batch, 1)), time),
        rest[0] if rest else None,
        first or [None] * states,
    )


def _weights(layer: Layer, gates: int, static: Value | None, more: list[tuple[int, ...]]) -> list[Value]:
    shapes: list[tuple[int, ...]] = [(gates, prod(layer.x.shape[2:])), (gates,)]
    if static is not None:
        shapes.append((gates, prod(static.shape[1:])))
    return [layer.constant(array, f"weight{i}") for i, array in enumerate(layer.weights(*shapes, *more))]


def _transformed(
    layer: Layer, weight: Value, bias: Value, static_weights: list[Value], static: Value | None
) -> list[Value]:
    """W x + b (and what the shared bottom adds) of every step, (N, gates)."""
    b, (time, batch) = layer.b, layer.x.shape[:2]
    flat = layer.reshape(layer.x, (time * batch, prod(layer.x.shape[2:])))
    steps = _by_step(layer, b.matmul(flat, weight, bias, transpose_right=True), time)
    if static is None:
        return steps
    flat = layer.reshape(static, (batch, prod(static.shape[1:])))
    shared = b.matmul(flat, static_weights[0], transpose_right=True)
    return [b.add(step, shared) for step in steps]


def _by_step(layer: Layer, rows: Value, time: int) -> list[Value]:
    if time == 1:
        return [rows]
    return list(layer.b.create("split", [rows], {"axis": 0, "sizes": (rows.shape[0] // time,) * time}).results)


def _results(layer: Layer, outputs: list[Value], states: list[Value]) -> list[Value]:
    joined = layer.b.concat(*outputs, axis=0) if len(outputs) > 1 else outputs[0]
    time, batch = layer.x.shape[:2]
    whole = layer.reshape(joined, (time, batch, joined.shape[1]))
    if not layer.p.recurrent_param.expose_hidden:
        return [whole]
    return [whole, *(layer.reshape(state, (1, *state.shape)) for state in states)]
