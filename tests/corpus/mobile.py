"""Networks for small devices: MobileNet v1 to v4, EfficientNet, ShuffleNet."""

from __future__ import annotations

from .blocks import Net
from .classifiers import gate, head


def mobilenet_v1(net: Net) -> list[str]:
    x, width = net.conv(net.image(), net.width(8), 3, 2), net.width(16)
    for i in range(net.count(2, 5)):
        x = net.conv(net.depthwise(x, stride=1 + i % 2), width, 1)
        width = min(width * 2, 128)
    return head(net, x)


def _inverted(net: Net, x: str, out: int, stride: int, kernel: int, expand: int, se: bool) -> str:
    y = net.conv(x, net.channels(x) * expand, 1) if expand > 1 else x
    y = net.depthwise(y, kernel, stride)
    y = gate(net, y, net.pick("Sigmoid", "HardSigmoid")) if se else y
    y = net.conv(y, out, 1, act=None)
    return net.g.add("Add", x, y) if net.g.shape(x) == net.g.shape(y) else y


def _inverted_net(net: Net, act: str, se: float, kernels: tuple[int, ...]) -> list[str]:
    net.act = act
    x, width = net.conv(net.image(), net.width(16), 3, 2), net.width(16)
    for stage in range(net.count(1, 3)):
        for block in range(net.count(1, 2)):
            stride = 2 if not block and stage else 1
            x = _inverted(net, x, width, stride, net.pick(*kernels), net.pick(1, 3, 4, 6), net.chance(se))
        width = width * 3 // 2
    return head(net, net.conv(x, width * 2, 1))


def mobilenet_v2(net: Net) -> list[str]:
    return _inverted_net(net, "relu6", 0, (3,))


def mobilenet_v3(net: Net) -> list[str]:
    return _inverted_net(net, "hardswish", 0.5, (3, 5))


def efficientnet(net: Net) -> list[str]:
    return _inverted_net(net, "swish", 1, (3, 5))


def mobilenet_v4(net: Net) -> list[str]:
    """A depthwise window before the expansion, and attention over fewer keys."""
    x, width = net.conv(net.image(), net.width(16), 3, 2), net.width(24)
    for _ in range(net.count(1, 3)):
        y = net.conv(net.depthwise(x, net.pick(3, 5), act=None), width * 4, 1)
        y = net.conv(net.depthwise(y, net.pick(3, 5), net.pick(1, 2)), width, 1, act=None)
        x = net.g.add("Add", x, y) if net.g.shape(x) == net.g.shape(y) else y
    return head(net, x)


def shufflenet(net: Net) -> list[str]:
    """Halves of channels, which a reshape, a transpose and a reshape mix."""
    g, half = net.g, net.width(12)
    x = net.conv(net.image(), half * 2, 3, 2)
    for _ in range(net.count(1, 4)):
        if net.chance(0.3):
            kept, y = net.conv(net.depthwise(x, stride=2, act=None), half, 1), net.conv(x, half, 1)
            y = net.conv(net.depthwise(y, stride=2, act=None), half, 1)
        else:
            kept, y = net.split(x, [half, half])
            y = net.conv(net.depthwise(net.conv(y, half, 1), act=None), half, 1)
        joined = g.add("Concat", kept, y, axis=1)
        n, c, h, w = g.shape(joined)
        y = g.add("Transpose", g.add("Reshape", joined, g.constant([n, 2, c // 2, h, w], int)), perm=[0, 2, 1, 3, 4])
        x = g.add("Reshape", y, g.constant([n, c, h, w], int))
    return head(net, x)


FAMILIES = (mobilenet_v1, mobilenet_v2, mobilenet_v3, mobilenet_v4, efficientnet, shufflenet)
