"""Networks that compute their filters: styles, mixtures of experts' kernels, templates that are looked for."""

from __future__ import annotations

from .blocks import Net
from .classifiers import head


def styled(net: Net) -> list[str]:
    """A picture of maps whose convolutions a style scales: kernels times a number per input channel, normalized."""
    g, n = net.g, net.batch
    width, kernel = net.width(12), net.pick(1, 3, 3)
    x = net.conv(net.image(), width, 3, 2)
    style = net.activation(net.dense(net.flat(net.mean(x)), 16), "LeakyRelu")
    h, w = g.shape(x)[2:]
    for _ in range(net.count(1, 2)):
        scale = net.reshape(g.add("Add", net.dense(style, width), g.constant(1.0)), [n, 1, width, 1, 1])
        weight = net.weights((width, width, kernel, kernel), width * kernel * kernel)
        weight = g.add("Mul", g.constant(weight[None]), scale)
        if net.chance(0.7):
            power = g.add("ReduceSum", g.add("Mul", weight, weight), g.constant([2, 3, 4], int), keepdims=1)
            weight = g.add("Div", weight, g.add("Sqrt", g.add("Add", power, g.constant(1e-8))))
        weight = net.reshape(weight, [n * width, width, kernel, kernel])
        maps = net.reshape(x, [1, n * width, h, w])
        maps = g.add("Conv", maps, weight, group=n, pads=[kernel // 2] * 4, kernel_shape=[kernel] * 2)
        x = net.activation(net.reshape(maps, [n, width, h, w]), "LeakyRelu")
    return [g.add("Tanh", net.conv(x, 3, 1, act=None, norm=False))]


def experts(net: Net) -> list[str]:
    """Kernels that are mixed of a few for each picture, of maps or of a map per channel."""
    g, n, count = net.g, net.batch, net.pick(2, 4)
    x = net.conv(net.image(), net.width(12), 3, 2)
    for _ in range(net.count(1, 2)):
        c, (h, w) = net.channels(x), g.shape(x)[2:]
        deep = net.chance(0.5)
        out, depth, kernel = (net.width(16), c, 3) if deep else (c, 1, net.pick(3, 5))
        shares = net.softmax(net.dense(net.flat(net.mean(x)), count))
        kernels = net.weights((count, out * depth * kernel * kernel), depth * kernel * kernel)
        weight = net.reshape(g.add("MatMul", shares, g.constant(kernels)), [n * out, depth, kernel, kernel])
        group, pads = (n if deep else n * c), [kernel // 2] * 4
        maps = net.reshape(x, [1, n * c, h, w])
        maps = g.add("Conv", maps, weight, group=group, pads=pads, kernel_shape=[kernel] * 2)
        x = net.activation(net.norm(net.reshape(maps, [n, out, h, w])), net.act)
    return head(net, x)


def tracked(net: Net) -> list[str]:
    """A template of a picture is looked for in another: its maps are the kernels of the other's."""
    g, n, width = net.g, net.batch, net.width(16)
    first, second = net.split(net.image(6), [3, 3])
    maps = net.conv(net.conv(first, width, 3, 2), width, 3, act=None)
    template = net.conv(net.conv(second, width, 3, 2), width, 3, act=None)
    (h, w), size = g.shape(maps)[2:], net.pick(3, 4, 5)
    starts, ends = [h // 2 - size // 2, w // 2 - size // 2], [h // 2 - size // 2 + size, w // 2 - size // 2 + size]
    at = (g.constant(each, int) for each in (starts, ends, [2, 3]))
    template = g.add("Slice", template, *at)
    own = net.chance(0.6)
    kernel = net.reshape(template, [n * width, 1, size, size] if own else [n, width, size, size])
    found = g.add("Conv", net.reshape(maps, [1, n * width, h, w]), kernel, group=n * width if own else n)
    h, w = g.shape(found)[2:]
    if not own:
        return [g.add("Sigmoid", g.add("Mul", net.reshape(found, [n, 1, h, w]), g.constant(0.02)))]
    found = net.conv(net.norm(net.reshape(found, [n, width, h, w])), width, 1)
    return [net.conv(found, 4, 1, act=None, norm=False), g.add("Sigmoid", net.conv(found, 1, 1, act=None, norm=False))]


FAMILIES = (styled, experts, tracked)
