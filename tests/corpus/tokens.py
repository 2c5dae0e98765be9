"""Networks on tokens: ViT, Swin, BERT, decoders with a cache, MLP-Mixer."""

from __future__ import annotations

import numpy as np

from .blocks import Net


def _heads(net: Net, x: str, heads: int) -> str:
    """[n, t, c] -> [n, heads, t, c / heads]."""
    _n, t, c = net.g.shape(x)
    return net.g.add("Transpose", net.reshape(x, [0, t, heads, c // heads]), perm=[0, 2, 1, 3])


def _scores(net: Net, q: str, k: str) -> str:
    """Products of queries and keys; PyTorch's one operator for it takes a part of the scale to each, from a shape."""
    g, scale = net.g, net.g.shape(q)[-1] ** 0.5
    if net.exporter == "torch" and net.chance(0.5):
        last = g.add("Slice", g.add("Shape", q), g.constant([-1], int), g.constant([2**63 - 1], int))
        root = g.add("Sqrt", g.add("Div", g.constant([1]), g.add("Sqrt", g.add("Cast", last, to=1))))
        k = g.add("Transpose", k, perm=[0, 1, 3, 2])
        return g.add("MatMul", g.add("Mul", q, root), g.add("Mul", k, root))
    scores = g.add("MatMul", q, g.add("Transpose", k, perm=[0, 1, 3, 2]))
    return g.add("Div", scores, g.constant(scale)) if net.chance(0.5) else g.add("Mul", scores, g.constant(1 / scale))


def attention(
    net: Net, x: str, heads: int, bias: str = "", windows: str = "", past: tuple[str, ...] = ()
) -> tuple[str, list[str]]:
    """Attention to oneself (and to keys and values of before); gives also all keys and values.

    bias: what is added to scores [n, heads, t, t + past]. windows: what is added to those of each window of a picture,
    [1, windows, 1, t, t].
    """
    g, (_n, t, c) = net.g, net.g.shape(x)
    if net.chance(0.4):
        q, k, v = (_heads(net, each, heads) for each in net.split(net.dense(x, 3 * c), [c, c, c], axis=2))
    else:
        q, k, v = (_heads(net, net.dense(x, c), heads) for _ in range(3))
    if past:
        k, v = (g.add("Concat", old, new, axis=2) for old, new in zip(past, (k, v)))
    scores = _scores(net, q, k)
    scores = g.add("Add", scores, bias) if bias else scores
    if windows:  # each window of a picture hides others of its places
        shape = g.shape(scores)
        apart = net.reshape(scores, [-1, *g.shape(windows)[1:2], *shape[1:]])
        scores = net.reshape(g.add("Add", apart, windows), [-1, *shape[1:]])
    y = g.add("Transpose", g.add("MatMul", net.softmax(scores), v), perm=[0, 2, 1, 3])
    return net.dense(net.reshape(y, [0, t, c]), c), [k, v]


def block(net: Net, x: str, heads: int, after: bool = False, **more: object) -> tuple[str, list[str]]:
    """Attention and two layers, norms before or after the sums."""
    g, c = net.g, net.g.shape(x)[-1]
    y, kept = attention(net, x if after else net.layer_norm(x), heads, **more)  # type: ignore[arg-type]
    x = g.add("Add", x, y)
    x = net.layer_norm(x) if after else x
    y = net.dense(net.activation(net.dense(x if after else net.layer_norm(x), 2 * c), net.pick("gelu", "swish")), c)
    x = g.add("Add", x, y)
    return (net.layer_norm(x) if after else x), kept


def _patches(net: Net, c: int) -> str:
    patch = net.pick(4, 8) if min(net.size) >= 16 else 2
    x = net.conv(net.image(), c, patch, patch, act=None, norm=False)
    return net.g.add("Transpose", net.reshape(x, [0, c, -1]), perm=[0, 2, 1])


def vit(net: Net) -> list[str]:
    g, heads = net.g, net.pick(1, 2, 3)
    c = heads * net.pick(8, 16, 24)
    x = _patches(net, c)
    if net.chance(0.6):
        first = g.add("Expand", g.constant(net.random.standard_normal((1, 1, c))), g.constant([net.batch, 1, c], int))
        x = g.add("Concat", first, x, axis=1)
    x = g.add("Add", x, g.constant(net.random.standard_normal((1, *g.shape(x)[1:])) * 0.5))
    for _ in range(net.count(1, 3)):
        x, _kept = block(net, x, heads)
    x = net.layer_norm(x)
    x = (
        g.add("Gather", x, g.constant(0, int), axis=1)
        if net.chance(0.5)
        else g.add("ReduceMean", x, axes=[1], keepdims=0)
    )
    return [net.dense(x, 10)]


def swin(net: Net) -> list[str]:
    """Windows, every other time shifted."""
    g, heads, side = net.g, net.pick(1, 2), net.pick(2, 4, 7)
    c, n, count = heads * net.pick(8, 16), net.batch, net.count(1, 3)
    net.size = (side * count * 2, side * count * 2)
    x = g.add("Transpose", net.conv(net.image(), c, 2, 2, act=None, norm=False), perm=[0, 2, 3, 1])
    for layer in range(net.count(1, 3)):
        whole, shift = x, side // 2 if layer % 2 else 0
        x = _rolled(net, net.layer_norm(x), shift)
        x = net.reshape(x, [n, count, side, count, side, c])
        x = net.reshape(g.add("Transpose", x, perm=[0, 1, 3, 2, 4, 5]), [-1, side * side, c])
        bias = g.constant(net.random.standard_normal((1, heads, side**2, side**2)) * 0.5)
        x, _kept = attention(net, x, heads, bias, _hidden(net, count, side, shift) if shift else "")
        x = g.add("Transpose", net.reshape(x, [n, count, count, side, side, c]), perm=[0, 1, 3, 2, 4, 5])
        x = g.add("Add", whole, _rolled(net, net.reshape(x, [n, count * side, count * side, c]), -shift))
        x = g.add("Add", x, net.dense(net.activation(net.dense(net.layer_norm(x), 2 * c), "gelu"), c))
    return [net.dense(g.add("ReduceMean", x, axes=[1, 2], keepdims=0), 10)]


def _hidden(net: Net, count: int, side: int, shift: int) -> str:
    """-100 where two places of a window were not beside each other before the roll: [1, windows, 1, t, t]."""
    parts = np.zeros(count * side, int)
    parts[-side:], parts[-shift:] = 1, 2
    areas = (3 * parts[:, None] + parts).reshape(count, side, count, side).transpose(0, 2, 1, 3).reshape(-1, side**2)
    return net.g.constant(np.where(areas[:, :, None] == areas[:, None], 0, -100)[None, :, None])


def _rolled(net: Net, x: str, shift: int) -> str:
    """Rows and columns moved around, `shift` of them; to PyTorch an end is the largest number."""
    for axis in (1, 2) if shift else ():
        size = net.g.shape(x)[axis]
        at, end = shift % size, 2**63 - 1 if net.exporter == "torch" else size
        x = net.g.add("Concat", net.slice(x, at, end, axis), net.slice(x, 0, at, axis), axis=axis)
    return x


def bert(net: Net) -> list[str]:
    """Rows of a table, a mask for what is padding."""
    g, heads, t = net.g, net.pick(1, 2, 4), net.pick(5, 16, 33)
    c, words = heads * net.pick(8, 16), 50
    ids = g.input("x", net.random.integers(0, words, (net.batch, t)))
    x = g.add("Gather", g.constant(net.random.standard_normal((words, c))), ids)
    x = net.layer_norm(g.add("Add", x, g.constant(net.random.standard_normal((1, t, c)) * 0.3)))
    mask = ""
    if net.chance(0.6):
        given = g.input("mask", (net.random.random((net.batch, 1, 1, t)) < 0.8).astype(np.float32))
        mask = g.add("Mul", g.add("Sub", g.constant(1), given), g.constant(-10000))
    for _ in range(net.count(1, 3)):
        x, _kept = block(net, x, heads, after=True, bias=mask)
    return [net.dense(g.add("Gather", x, g.constant(0, int), axis=1), 2) if net.chance(0.5) else net.dense(x, 5)]


def decoder(net: Net) -> list[str]:
    """One step behind keys and values of earlier ones, which go in and come out."""
    g, heads, t = net.g, net.pick(1, 2, 4), net.pick(7, 16, 31)
    c, outs = heads * net.pick(8, 16), []
    x = net.vectors((net.batch, 1, c))
    for layer in range(net.count(1, 2)):
        shape = (net.batch, heads, t, c // heads)
        past = tuple(
            g.input(f"past_{kind}{layer}", net.random.standard_normal(shape).astype(np.float32)) for kind in "kv"
        )
        x, kept = block(net, x, heads, past=past)
        outs += kept
    return [net.dense(net.layer_norm(x), 20), *outs]


def mixer(net: Net) -> list[str]:
    g, c = net.g, net.width(16)
    x = _patches(net, c)
    t = g.shape(x)[1]
    for _ in range(net.count(1, 3)):
        y = g.add("Transpose", net.layer_norm(x), perm=[0, 2, 1])
        y = net.dense(net.activation(net.dense(y, 2 * t), "gelu"), t)
        x = g.add("Add", x, g.add("Transpose", y, perm=[0, 2, 1]))
        x = g.add("Add", x, net.dense(net.activation(net.dense(net.layer_norm(x), 2 * c), "gelu"), c))
    return [net.dense(g.add("ReduceMean", net.layer_norm(x), axes=[1], keepdims=0), 10)]


FAMILIES = (vit, swin, bert, decoder, mixer)
