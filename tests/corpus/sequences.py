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
    t, _, n, _ = g.shape(y)
    y = net.reshape(g.add("Transpose", y, perm=[0, 2, 1, 3]), [t, n, ways * hidden])
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


FAMILIES = (crnn, tcn, spectrogram, conv1d)
