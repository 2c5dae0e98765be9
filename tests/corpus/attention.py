"""Attention in other forms: decoders with rotations, MobileViT, queries of objects, text beside pictures, Conformer."""

from __future__ import annotations

import numpy as np

from .blocks import Net
from .tokens import attention, block


def _rms_norm(net: Net, x: str) -> str:
    g, count = net.g, net.g.shape(x)[-1]
    mean = g.add("ReduceMean", g.add("Pow", x, g.constant(2)), axes=[-1])
    root = g.add("Sqrt", g.add("Add", mean, g.constant(1e-6)))
    y = g.add("Mul", x, g.add("Reciprocal", root)) if net.chance(0.5) else g.add("Div", x, root)
    return g.add("Mul", g.constant(np.exp(net.random.standard_normal(count) * 0.3)), y)


def _rotated(net: Net, x: str, at: int) -> str:
    """Halves of each head turned by angles of the position."""
    g, (_n, _heads, t, c) = net.g, net.g.shape(x)
    angle = (at + np.arange(t))[:, None] / 100.0 ** (np.arange(c // 2) / (c // 2))
    cos, sin = (g.constant(np.tile(each(angle), (1, 2))[None, None]) for each in (np.cos, np.sin))
    low, high = net.split(x, [c // 2, c // 2], axis=3)
    turned = g.add("Concat", g.add("Neg", high), low, axis=3)
    return g.add("Add", g.add("Mul", x, cos), g.add("Mul", turned, sin))


def llama(net: Net) -> list[str]:
    """A step or a prompt of a decoder: RMS norms, rotations, keys shared by queries; keys and values come out."""
    g, shared, pairs = net.g, net.pick(1, 2), net.pick(1, 2)
    size, heads, t = net.pick(8, 16), shared * pairs, net.pick(1, 1, 5)
    past, c, n, outs = net.pick(7, 16), heads * size, net.batch, []
    x = net.vectors((n, t, c))
    for layer in range(net.count(1, 2)):
        y = _rms_norm(net, x)

        def lifted(count: int, y: str = y) -> str:
            made = g.add("MatMul", y, g.constant(net.weights((count * size, c), c).T.copy()))
            return g.add("Transpose", net.reshape(made, [0, t, count, size]), perm=[0, 2, 1, 3])

        q, k, v = _rotated(net, lifted(heads), past), _rotated(net, lifted(shared), past), lifted(shared)
        shape = (n, shared, past, size)
        old = [g.input(f"past{layer}_{kind}", net.random.standard_normal(shape).astype(np.float32)) for kind in "kv"]
        k, v = (g.add("Concat", *each, axis=2) for each in zip(old, (k, v)))
        outs += [k, v]
        if pairs > 1:
            whole = [n, shared, pairs, past + t, size]
            k, v = (
                g.add("Expand", g.add("Unsqueeze", each, g.constant([2], int)), g.constant(whole, int))
                for each in (k, v)
            )
            k, v = (net.reshape(each, [n, heads, past + t, size]) for each in (k, v))
        scores = g.add("MatMul", q, g.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.add("Mul", scores, g.constant(size**-0.5))
        if t > 1:
            later = np.triu(np.full((t, past + t), -1e4), past + 1)
            scores = g.add("Add", scores, g.constant(later[None, None]))
        y = g.add("Transpose", g.add("MatMul", net.softmax(scores), v), perm=[0, 2, 1, 3])
        x = g.add("Add", x, net.dense(net.reshape(y, [0, t, c]), c))
        y = _rms_norm(net, x)
        gate = net.activation(net.dense(y, 2 * c), "swish")
        x = g.add("Add", x, net.dense(g.add("Mul", gate, net.dense(y, 2 * c)), c))
    return [net.dense(_rms_norm(net, x), 20), *outs]


def mobilevit(net: Net) -> list[str]:
    """Pixels of each place in small windows attend to each other, between convolutions."""
    g, heads = net.g, net.pick(1, 2)
    c, n = heads * net.pick(8, 16), net.batch
    x = net.conv(net.image(), net.width(16), 3, 2)
    h, w = (size // 2 * 2 for size in g.shape(x)[2:])
    x = net.slice(net.slice(x, 0, h, 2), 0, w, 3)
    y = net.conv(net.conv(x, net.channels(x)), c, 1, act=None, norm=False)
    y = net.reshape(y, [n * c * h // 2, 2, w // 2, 2])
    y = net.reshape(g.add("Transpose", y, perm=[0, 2, 1, 3]), [n, c, h * w // 4, 4])
    y = net.reshape(g.add("Transpose", y, perm=[0, 3, 2, 1]), [n * 4, h * w // 4, c])
    for _ in range(net.count(1, 2)):
        y, _kept = block(net, y, heads)
    y = g.add("Transpose", net.reshape(net.layer_norm(y), [n, 4, h * w // 4, c]), perm=[0, 3, 2, 1])
    y = g.add("Transpose", net.reshape(y, [n * c * h // 2, w // 2, 2, 2]), perm=[0, 2, 1, 3])
    y = net.conv(net.reshape(y, [n, c, h, w]), net.channels(x), 1)
    x = net.conv(g.add("Concat", x, y, axis=1), net.channels(x))
    return [net.dense(net.flat(net.mean(x)), 10)]


def detr(net: Net) -> list[str]:
    """Learned queries read the places of a map; each gives classes and a box."""
    g, heads, count = net.g, net.pick(1, 2), net.pick(3, 9)
    c, n = heads * net.pick(8, 16), net.batch
    x = net.conv(net.conv(net.image(), net.width(8), 3, 2), c, 3, 2)
    x = g.add("Transpose", net.reshape(x, [0, c, -1]), perm=[0, 2, 1])
    x = g.add("Add", x, g.constant(net.random.standard_normal((1, *g.shape(x)[1:])) * 0.3))
    x, _kept = block(net, x, heads, after=True)
    t, query = g.shape(x)[1], g.constant(net.random.standard_normal((1, count, c)))
    y = g.add("Expand", query, g.constant([n, count, c], int))
    y = net.layer_norm(g.add("Add", y, attention(net, y, heads)[0]))
    q, k, v = (
        g.add("Transpose", net.reshape(net.dense(each, c), [n, size, heads, c // heads]), perm=perm)
        for each, size, perm in ((y, count, [0, 2, 1, 3]), (x, t, [0, 2, 3, 1]), (x, t, [0, 2, 1, 3]))
    )
    scores = net.softmax(g.add("Div", g.add("MatMul", q, k), g.constant((c // heads) ** 0.5)))
    read = net.reshape(g.add("Transpose", g.add("MatMul", scores, v), perm=[0, 2, 1, 3]), [n, count, c])
    y = net.layer_norm(g.add("Add", y, net.dense(read, c)))
    return [net.dense(y, 5), g.add("Sigmoid", net.dense(net.activation(net.dense(y, c), "Relu"), 4))]


def clip(net: Net) -> list[str]:
    """Two vectors in length one, and how alike they are."""
    g, c = net.g, net.pick(8, 24)
    picture = net.dense(net.flat(net.mean(net.conv(net.image(), net.width(16), 3, 2))), c)
    words = g.constant(net.random.standard_normal((net.count(2, 7), c)))
    ones = []
    for each in (picture, words):
        length = g.add("ReduceL2", each, axes=[-1], keepdims=1)
        if net.exporter == "torch":
            length = g.add("Clip", length, g.constant(1e-12))
        ones.append(g.add("Div", each, length))
    y = g.add("MatMul", ones[0], g.add("Transpose", ones[1], perm=[1, 0]))
    return [net.softmax(g.add("Mul", y, g.constant(14.3)))]


def conformer(net: Net) -> list[str]:
    """Half steps, attention, a gated window over time."""
    g, heads, t = net.g, net.pick(1, 2), net.pick(9, 24, 50)
    c = heads * net.pick(8, 16)
    x = net.vectors((net.batch, t, c))
    for _ in range(net.count(1, 2)):
        y = net.dense(net.activation(net.dense(net.layer_norm(x), 2 * c), "swish"), c)
        x = g.add("Add", x, g.add("Mul", y, g.constant(0.5)))
        x = g.add("Add", x, attention(net, net.layer_norm(x), heads)[0])
        y = g.add("Transpose", net.layer_norm(x), perm=[0, 2, 1])
        a, b = net.split(net.conv(y, 2 * c, 1, act=None, axes=1, norm=False), [c, c])
        y = net.conv(g.add("Mul", a, g.add("Sigmoid", b)), c, net.pick(5, 15), group=c, act="swish", axes=1)
        y = net.conv(y, c, 1, act=None, axes=1, norm=False)
        x = net.layer_norm(g.add("Add", x, g.add("Transpose", y, perm=[0, 2, 1])))
    return [g.add("LogSoftmax", net.dense(x, net.width(12)), axis=-1)]


def experts(net: Net) -> list[str]:
    """All experts read all tokens, each with matrices of its own, and a gate weighs what they say."""
    g, many, t = net.g, net.pick(2, 3, 8), net.pick(9, 50, 384)
    c, wide, n = net.pick(16, 40, 64), net.pick(32, 72, 128), net.batch
    x = net.vectors((n, t, c))
    gate = g.add("Transpose", net.softmax(net.dense(x, many)), perm=[0, 2, 1])
    y = g.add("Unsqueeze", net.layer_norm(x), g.constant([1], int))
    for ins, outs in ((c, wide), (wide, c)):
        weights = np.stack([net.weights((outs, ins), ins) for _ in range(many)])
        if net.chance(0.5):
            matrices = g.constant(weights.transpose(0, 2, 1).copy())
        else:
            matrices = g.add("Transpose", g.constant(weights), perm=[0, 2, 1])
        y = g.add("MatMul", y, matrices)
        y = g.add("Add", y, g.constant(net.random.standard_normal((many, 1, outs)) * 0.3))
        y = net.activation(y, net.pick("Relu", "gelu")) if outs == wide else y
    y = g.add("Mul", y, g.add("Unsqueeze", gate, g.constant([3], int)))
    return [net.dense(g.add("Add", x, g.add("ReduceSum", y, g.constant([1], int), keepdims=0)), 10)]


def memory(net: Net) -> list[str]:
    """Tokens attend to keys and values that were learned, which exporters repeat for each sample of a batch."""
    g, heads, t, n = net.g, net.pick(1, 2, 4), net.pick(9, 50, 384), net.batch
    size, slots = net.pick(16, 40, 64), net.pick(8, 32, 100)
    x = net.vectors((n, t, heads * size))
    q = g.add("Transpose", net.reshape(net.dense(x, heads * size), [n, t, heads, size]), perm=[0, 2, 1, 3])
    keys, values = (
        g.add("Expand", g.constant(net.weights((1, heads, *shape), shape[0])), g.constant([n, heads, *shape], int))
        for shape in ((size, slots), (slots, size))
    )
    scores = net.softmax(g.add("MatMul", q, keys))
    read = g.add("Transpose", g.add("MatMul", scores, values), perm=[0, 2, 1, 3])
    y = net.layer_norm(g.add("Add", x, net.reshape(read, [n, t, heads * size])))
    return [net.dense(y, 10)]


FAMILIES = (llama, mobilevit, detr, clip, conformer, experts, memory)
