"""Networks that name what is in a picture: plain, residual, dense and branching ones."""

from __future__ import annotations

from .blocks import Net


def head(net: Net, x: str) -> list[str]:
    """A mean, a layer for the classes, and sometimes their probabilities."""
    y = net.dense(net.flat(net.mean(x)), net.width(net.pick(5, 10, 100)))
    return [net.softmax(y) if net.chance(0.5) else y]


def vgg(net: Net) -> list[str]:
    x, width = net.image(), net.pick(8, 16, 32)
    for stage in range(net.count(1, 3)):
        for _ in range(net.count(1, 2)):
            x = net.conv(x, net.width(width << stage))
        x = net.pool(x)
    x = net.activation(net.dense(net.flat(x), net.width(64)), "Relu")
    return [net.softmax(net.dense(x, 10))]


def _residual(net: Net, x: str, out: int, stride: int, group: int, se: bool = False) -> str:
    if net.chance(0.5):
        y = net.conv(net.conv(x, out, stride=stride), out, act=None)
    else:
        middle = max(group, out // 2 // group * group)
        y = net.conv(net.conv(x, middle, 1), middle, stride=stride, group=group)
        y = net.conv(gate(net, y) if se else y, out, 1, act=None)
    if stride > 1 or net.channels(x) != out:
        if stride > 1 and net.chance(0.3):  # ResNet-D
            x = net.conv(net.pool(x, "AveragePool", 2, 2, ceil=1), out, 1, act=None)
        else:
            x = net.conv(x, out, 1, stride, act=None)
    if net.g.shape(x) != net.g.shape(y):
        return net.activation(y, net.act)
    return net.activation(net.g.add("Add", *net.pick((x, y), (y, x))), net.act)


def gate(net: Net, x: str, sigmoid: str = "Sigmoid") -> str:
    """Squeeze and excitation."""
    y = net.conv(net.mean(x), max(2, net.channels(x) // net.pick(4, 8)), 1, act=net.pick("Relu", net.act), norm=False)
    y = net.conv(y, net.channels(x), 1, act=None, norm=False)
    return net.g.add("Mul", x, net.g.add(sigmoid, y))


def resnet(net: Net) -> list[str]:
    width = net.width(net.pick(8, 16, 32))
    x = net.conv(net.image(), width, net.pick(3, 7), net.pick(1, 2))
    x = net.pool(x, kernel=3) if net.chance(0.5) else x
    for stage in range(net.count(1, 3)):
        for block in range(net.count(1, 2)):
            x = _residual(net, x, width << stage, 2 if stage and not block else 1, 1)
    return head(net, x)


def regnet(net: Net) -> list[str]:
    """Groups of few channels, squeeze and excitation."""
    group = net.pick(8, 16, 24)
    x, se = net.conv(net.image(), net.width(16), 3, 2), net.chance(0.5)
    for stage in range(net.count(1, 3)):
        for block in range(net.count(1, 2)):
            out = group * 2 * (stage + 1)
            y = net.conv(net.conv(x, out, 1), out, stride=1 if block else 2, group=out // group)
            y = net.conv(gate(net, y) if se else y, out, 1, act=None)
            x = x if block else net.conv(x, out, 1, 2, act=None)
            x = net.activation(net.g.add("Add", x, y), net.act)
    return head(net, x)


def densenet(net: Net) -> list[str]:
    """Norm and activation come before the convolution."""
    x, growth = net.conv(net.image(), net.width(16), 3, 2), net.width(8)
    for _ in range(net.count(1, 2)):
        for _ in range(net.count(2, 4)):
            y = net.conv(net.activation(net.norm(x), "Relu"), growth * 2, 1)
            x = net.g.add("Concat", x, net.conv(y, growth, act=None, norm=False), axis=1)
        y = net.conv(net.activation(net.norm(x), "Relu"), net.channels(x) // 2, 1, act=None, norm=False)
        x = net.pool(y, "AveragePool", 2, 2)
    return head(net, x)


def inception(net: Net) -> list[str]:
    x = net.conv(net.image(), net.width(16), 3, net.pick(1, 2))
    for _ in range(net.count(1, 3)):
        pooled = net.pool(x, net.pick("AveragePool", "MaxPool"), 3, 1)
        wide = net.conv(net.conv(net.conv(x, net.width(8), 1), net.width(8), (1, 7)), net.width(12), (7, 1))
        parts = [net.conv(x, net.width(8), 1), net.conv(net.conv(x, net.width(6), 1), net.width(12), net.pick(3, 5))]
        x = net.g.add("Concat", *parts, wide, net.conv(pooled, net.width(8), 1), axis=1)
    return head(net, x)


def convnext(net: Net) -> list[str]:
    """Large windows, layer norms over channels that go last and come back."""
    g, c = net.g, net.width(24)
    x = net.conv(net.image(), c, 4, 4, act=None, norm=False)
    for _ in range(net.count(1, 3)):
        y = net.depthwise(x, 7, act=None)
        y = net.layer_norm(g.add("Transpose", y, perm=[0, 2, 3, 1]))
        y = net.dense(net.activation(net.dense(y, 4 * c), "gelu"), c)
        y = g.add("Mul", y, g.constant(net.random.standard_normal(c) * 0.1))
        x = g.add("Add", x, g.add("Transpose", y, perm=[0, 3, 1, 2]))
    return head(net, x)


FAMILIES = (vgg, resnet, regnet, densenet, inception, convnext)
