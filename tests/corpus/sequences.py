"""Networks on sequences: text lines, sound."""

from __future__ import annotations

import numpy as np

from .blocks import Net


def crnn(net: Net) -> list[str]:
    """Convolutions down to one row, then an LSTM or a GRU both ways."""
    g = net.g
    x = net.image(1)
    for _ in range(net.count(1, 2)):
        x = net.pool(net.conv(x, net.width(12)))
    x = g.add("ReduceMean", x, axes=[2], keepdims=0)
    x = g.add("Transpose", x, perm=[2, 0, 1])
    kind, hidden, ways = net.pick("LSTM", "GRU"), net.pick(4, 9, 16), net.pick(1, 2)
    gates = (4 if kind == "LSTM" else 3) * hidden
    w, r = (g.constant(net.random.standard_normal((ways, gates, n)) / n**0.5) for n in (g.shape(x)[2], hidden))
    b = g.constant(net.random.standard_normal((ways, 2 * gates)) * 0.3)
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    y = g.add(kind, x, w, r, b, hidden_size=hidden, direction=("forward", "bidirectional")[ways - 1], **more)
    t = g.shape(y)[0]
    y = net.reshape(g.add("Transpose", y, perm=[0, 2, 1, 3]), [t, -1, ways * hidden])
    return [net.softmax(net.dense(y, net.width(12)))]


def tcn(net: Net) -> list[str]:
    """Causal windows over time with growing holes."""
    g, width, t = net.g, net.width(12), net.pick(16, 50, 101)
    x = net.vectors((net.batch, net.width(8), t))
    for layer in range(net.count(1, 4)):
        hole = 2**layer
        y = g.add("Pad", x, g.constant([0, 0, 2 * hole, 0, 0, 0], np.int64))
        w = net.weights((width, net.channels(x), 3), 3 * net.channels(x))
        b = g.constant(net.random.standard_normal(width) * 0.3)
        y = net.activation(g.add("Conv", y, g.constant(w), b, dilations=[hole]), net.act)
        x = g.add("Add", x, y) if net.g.shape(x) == net.g.shape(y) else y
    return [net.dense(g.add("ReduceMean", x, axes=[2], keepdims=0), 6)]


def spectrogram(net: Net) -> list[str]:
    """Frames times cosines and sines, powers, logarithms, then windows over pictures."""
    g, frame, bins = net.g, 64, 17
    x = net.vectors((net.batch, 1, frame * net.pick(6, 12)))
    angle = 2 * np.pi * np.arange(bins)[:, None] * np.arange(frame) / frame
    hann = np.hanning(frame)
    parts = [
        g.add("Conv", x, g.constant((each(angle) * hann)[:, None]), strides=[frame // 2]) for each in (np.cos, np.sin)
    ]
    power = g.add("Add", *(g.add("Mul", each, each) for each in parts))
    mel = g.constant(np.abs(net.random.standard_normal((net.pick(8, 12), bins))) / bins)
    y = g.add("Log", g.add("Add", g.add("MatMul", mel, power), g.constant(net.pick(1e-6, 1e-3))))
    y = g.add("Unsqueeze", y, g.constant([1], int))
    y = net.conv(net.conv(y, net.width(8)), net.width(12), 3, 2)
    return [net.dense(net.flat(net.mean(y)), 5)]


def conv1d(net: Net) -> list[str]:
    """One axis, depthwise windows, a gate of halves (GLU)."""
    g = net.g
    x = net.vectors((net.batch, net.width(8), net.pick(17, 64, 200)))
    for _ in range(net.count(1, 3)):
        c = net.channels(x)
        y = net.conv(x, 2 * c, 1, axes=1, act=None)
        a, b = net.split(y, [c, c])
        y = g.add("Mul", a, g.add("Sigmoid", b))
        y = net.conv(net.conv(y, c, net.pick(3, 9), group=c, axes=1), c, 1, act=None, axes=1)
        x = g.add("Add", x, y)
    return [net.conv(x, 5, 1, axes=1, act=None, norm=False)]


def streaming(net: Net) -> list[str]:
    """A step of a recurrent net: states and the end of earlier windows go in and come out."""
    g, c, t, hidden = net.g, net.width(8), net.pick(1, 4), net.pick(5, 16)
    x = net.vectors((net.batch, c, t))
    old = g.input("window", net.random.standard_normal((net.batch, c, 2)).astype(np.float32))
    joined = g.add("Concat", old, x, axis=2)
    y = g.add(
        "Conv", joined, g.constant(net.weights((c, c, 3), 3 * c)), g.constant(net.random.standard_normal(c) * 0.3)
    )
    y = g.add("Transpose", net.activation(y, net.act), perm=[2, 0, 1])
    kind = net.pick("LSTM", "GRU")
    gates = (4 if kind == "LSTM" else 3) * hidden
    weights = [g.constant(net.random.standard_normal((1, gates, n)) / n**0.5) for n in (c, hidden)]
    weights.append(g.constant(net.random.standard_normal((1, 2 * gates)) * 0.3))
    names = ["h", "c"] if kind == "LSTM" else ["h"]
    states = [g.input(name, net.random.standard_normal((net.batch, hidden)).astype(np.float32)) for name in names]
    states = [g.add("Unsqueeze", state, g.constant([0], int)) for state in states]
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    y, *new = g.add(kind, y, *weights, "", *states, hidden_size=hidden, results=1 + len(states), **more)
    y = g.add("Transpose", g.add("Squeeze", y, g.constant([1], int)), perm=[1, 0, 2])
    mask = g.add("Sigmoid", net.dense(y, net.width(6)))
    return [mask, net.slice(joined, t, t + 2, 2), *(g.add("Squeeze", each, g.constant([0], int)) for each in new)]


def wavenet(net: Net) -> list[str]:
    """Gates of tanh and sigmoid behind windows with holes; what each layer sees is summed."""
    g, c, seen = net.g, net.width(8), ""
    x = net.vectors((net.batch, 1, net.pick(64, 200)))
    x = net.conv(x, c, 1, act=None, axes=1, norm=False)
    for layer in range(net.count(2, 4)):
        y = net.conv(x, 2 * c, 3, dilation=2**layer, act=None, axes=1, norm=False)
        a, b = net.split(y, [c, c])
        y = g.add("Mul", g.add("Tanh", a), g.add("Sigmoid", b))
        skip = net.conv(y, net.width(8) if not seen else net.channels(seen), 1, act=None, axes=1, norm=False)
        seen = g.add("Add", seen, skip) if seen else skip
        x = g.add("Add", x, net.conv(y, c, 1, act=None, axes=1, norm=False))
    y = net.conv(g.add("Relu", seen), net.width(16), 1, act="Relu", axes=1, norm=False)
    return [net.conv(y, 3, 1, act=None, axes=1, norm=False)]


def masker(net: Net) -> list[str]:
    """Parts a sound: an encoder of samples, norms over channels and time, masks, and overlapping windows added."""
    g, c, length, step = net.g, net.width(12), 16, 8
    x = net.vectors((net.batch, 1, length + step * net.pick(7, 31)))
    code = g.add("Relu", g.add("Conv", x, g.constant(net.weights((c, 1, length), length)), strides=[step]))
    y = code
    for layer in range(net.count(1, 3)):
        low = g.add("Sub", y, g.add("ReduceMean", y, axes=[1, 2]))
        power = g.add("ReduceMean", g.add("Mul", low, low), axes=[1, 2])
        z = g.add("Div", low, g.add("Sqrt", g.add("Add", power, g.constant(1e-6))))
        z = g.add("Mul", z, g.constant(np.exp(net.random.standard_normal((1, c, 1)) * 0.3)))
        z = net.conv(z, c, 3, group=c, dilation=2**layer, act="PRelu", axes=1, norm=False)
        y = g.add("Add", y, net.conv(z, c, 1, act=None, axes=1, norm=False))
    y = g.add("Mul", code, g.add("Sigmoid", y))
    w = g.constant(net.weights((c, 1, length), c))
    return [g.add("ConvTranspose", y, w, strides=[step])]


FAMILIES = (crnn, tcn, spectrogram, conv1d, streaming, wavenet, masker)
