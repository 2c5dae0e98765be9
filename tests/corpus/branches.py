"""Networks of branches that are added, gated and split: RepVGG, SqueezeNet, GhostNet, ShuffleNet v1, CBAM, HRNet."""

from __future__ import annotations

from .blocks import Net
from .classifiers import head


def repvgg(net: Net) -> list[str]:
    """As trained: a window, a pixel and a norm alone, each with its norm, added before the activation."""
    net.folded, g = False, net.g
    x = net.conv(net.image(), net.width(16), 3, 2)
    for _ in range(net.count(1, 4)):
        out = net.pick(net.channels(x), net.width(24))
        stride = 1 if out == net.channels(x) else 2
        y = g.add("Add", net.conv(x, out, 3, stride, act=None), net.conv(x, out, 1, stride, act=None))
        if stride == 1:
            y = g.add("Add", y, net.norm(x))
        x = net.activation(y, net.act)
    return head(net, x)


def squeezenet(net: Net) -> list[str]:
    """Few channels, then two kinds of windows beside each other; classes by a convolution."""
    g = net.g
    x = net.pool(net.conv(net.image(), net.width(16), 3, 2, norm=False), kernel=3)
    for _ in range(net.count(1, 3)):
        y = net.conv(x, net.width(6), 1, norm=False)
        z = g.add("Concat", *(net.conv(y, net.width(16), k, norm=False) for k in (1, 3)), axis=1)
        x = g.add("Add", x, z) if g.shape(x) == g.shape(z) else z
    y = net.mean(net.conv(x, net.width(10), 1, norm=False))
    return [net.softmax(net.flat(y))]


def ghostnet(net: Net) -> list[str]:
    """Half of the channels are windows of the other half; what is too many is cut off."""
    g, c = net.g, net.width(16)
    x = net.conv(net.image(), c, 3, 2)
    for _ in range(net.count(1, 3)):
        first = net.conv(x, (c + 1) // 2, 1)
        y = g.add("Concat", first, net.depthwise(first), axis=1)
        y = net.slice(y, 0, c) if g.shape(y)[1] != c else y
        x = g.add("Add", x, net.depthwise(y, act=None))
    return head(net, x)


def shufflenet_v1(net: Net) -> list[str]:
    """Pixels in groups, whose channels are mixed between; a strided block joins a mean of windows."""
    g, groups = net.g, net.pick(2, 3, 4)
    c = groups * net.pick(5, 8, 12)
    x = net.conv(net.image(), c, 3, 2)
    for _ in range(net.count(1, 3)):
        stride = net.pick(1, 1, 2)
        y = net.conv(x, c, 1, group=groups)
        n, _, h, w = g.shape(y)
        y = g.add("Transpose", net.reshape(y, [n, groups, c // groups, h, w]), perm=[0, 2, 1, 3, 4])
        y = net.depthwise(net.reshape(y, [n, c, h, w]), stride=stride, act=None)
        y = net.conv(y, c, 1, group=groups, act=None)
        if g.shape(x) == g.shape(y):
            x = net.activation(g.add("Add", x, y), "Relu")
        elif min(g.shape(x)[2:]) > 2:
            pooled = g.add("AveragePool", x, kernel_shape=[3, 3], strides=[stride] * 2, pads=[1, 1, 1, 1])
            if g.shape(pooled)[2:] == g.shape(y)[2:] and c < 32:
                y, c = g.add("Concat", pooled, y, axis=1), g.shape(pooled)[1] + c
            x = net.activation(y, "Relu")
    return head(net, x)


def cbam(net: Net) -> list[str]:
    """Gates of channels by mean and maximum through one layer, then gates of places over the channels."""
    g, c = net.g, net.width(16)
    x = net.conv(net.image(), c, 3, 2)
    for _ in range(net.count(1, 2)):
        y = net.conv(x, c, 3)
        squeeze = g.constant(net.weights((max(2, c // 4), c, 1, 1), c))
        widen = g.constant(net.weights((c, max(2, c // 4), 1, 1), max(2, c // 4)))
        both = [
            g.add("Conv", g.add("Relu", g.add("Conv", each, squeeze)), widen)
            for each in (net.mean(y), g.add("GlobalMaxPool", y))
        ]
        y = g.add("Mul", y, g.add("Sigmoid", g.add("Add", *both)))
        planes = g.add("Concat", g.add("ReduceMean", y, axes=[1]), g.add("ReduceMax", y, axes=[1]), axis=1)
        y = g.add("Mul", y, net.conv(planes, 1, 7, act="Sigmoid", norm=False))
        x = net.activation(g.add("Add", x, y), net.act)
    return head(net, x)


def hrnet(net: Net) -> list[str]:
    """Maps of two sizes go side by side and are exchanged."""
    g, wide = net.g, net.width(12)
    fine = net.conv(net.image(), wide, 3, 2)
    h, w = (size // 2 * 2 for size in g.shape(fine)[2:])
    fine = net.slice(net.slice(fine, 0, h, 2), 0, w, 3)
    coarse = net.conv(fine, 2 * wide, 3, 2)
    for _ in range(net.count(1, 2)):
        fine, coarse = net.conv(fine, wide), net.conv(coarse, 2 * wide)
        up = net.upsample(net.conv(coarse, wide, 1, act=None), 2, net.pick("nearest", "linear"))
        down = net.conv(fine, 2 * wide, 3, 2, act=None)
        fine = net.activation(g.add("Add", fine, up), net.act)
        coarse = net.activation(g.add("Add", coarse, down), net.act)
    joined = g.add("Concat", fine, net.upsample(coarse, 2, "linear"), axis=1)
    heat = net.conv(net.conv(joined, net.width(16), 1), net.count(1, 5), 1, act=None, norm=False)
    return [g.add("ArgMax", heat, axis=1, keepdims=net.count(0, 1)) if net.chance(0.3) else heat]


FAMILIES = (repvgg, squeezenet, ghostnet, shufflenet_v1, cbam, hrnet)
