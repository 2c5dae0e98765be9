"""Networks that give pictures: U-Net, DeepLab, pyramids, super-resolution."""

from __future__ import annotations

import numpy as np

from .blocks import Net


def unet(net: Net) -> list[str]:
    g, width, skips = net.g, net.width(8), []
    x = net.image(net.pick(1, 3))
    for level in range(net.count(1, 3)):
        x = net.conv(net.conv(x, width << level), width << level)
        skips.append(x)
        x = net.pool(x)
    x = net.conv(x, net.channels(x) * 2)
    for skip in reversed(skips):
        x = net.deconv(x, net.channels(skip)) if net.chance(0.5) else net.upsample(x, 2, net.pick("nearest", "linear"))
        h, w = (a - b for a, b in zip(g.shape(skip)[2:], g.shape(x)[2:]))
        if h or w:
            x = g.add("Pad", x, g.constant([0, 0, 0, 0, 0, 0, h, w], np.int64), mode=net.pick("constant", "edge"))
        x = net.conv(g.add("Concat", skip, x, axis=1), net.channels(skip))
    return [net.conv(x, net.count(1, 4), 1, act=net.pick("Sigmoid", None), norm=False)]


def deeplab(net: Net) -> list[str]:
    """Windows with holes, and the mean of the picture at each place."""
    g, width, image = net.g, net.width(16), net.image()
    low = net.conv(net.conv(image, net.width(8), 3, 2), width, 3, 2)
    x = net.conv(net.depthwise(low, dilation=net.pick(1, 2)), width, 1)
    parts = [net.conv(x, width, 1)]
    parts += [net.conv(x, width, 3, dilation=d) for d in (net.pick(2, 3), net.pick(4, 6), net.pick(9, 12))]
    size = g.shape(x)
    y = net.conv(net.mean(x), width, 1)
    how = {"mode": net.pick("nearest", "linear"), "coordinate_transformation_mode": "asymmetric"}
    parts.append(g.add("Resize", y, "", "", g.constant([size[0], width, *size[2:]], np.int64), **how))
    x = net.conv(g.add("Concat", *parts, axis=1), width, 1)
    x = net.conv(x, net.count(2, 6), 1, act=None, norm=False)
    x = net.upsample(x, net.pick(2, 4), "linear")
    return [net.softmax(x, 1) if net.chance(0.3) else x]


def pyramid_pool(net: Net) -> list[str]:
    """Means of large windows, enlarged and joined."""
    g = net.g
    x = net.conv(net.image(), net.width(12), 3, 2)
    parts, (h, w) = [x], g.shape(x)[2:]
    for factor in (2, 4):
        if h % factor or w % factor:
            continue
        y = g.add("AveragePool", x, kernel_shape=[h // factor, w // factor], strides=[h // factor, w // factor])
        y = net.conv(y, net.width(6), 1)
        sizes = g.constant([*g.shape(y)[:2], h, w], np.int64)
        parts.append(g.add("Resize", y, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel"))
    x = g.add("Concat", *parts, axis=1) if len(parts) > 1 else x
    return [net.conv(x, net.count(2, 5), 3, act=None, norm=False)]


def super_resolution(net: Net) -> list[str]:
    """Channels become pixels."""
    g, width, factor = net.g, net.width(16), net.pick(2, 3, 4)
    image = net.image(net.pick(1, 3))
    first = x = net.conv(image, width, net.pick(3, 5), norm=False)
    for _ in range(net.count(1, 3)):
        x = g.add("Add", x, net.conv(net.conv(x, width), width, act=None))
    x = g.add("Add", x, first)
    colours = net.channels(image)
    x = net.conv(x, colours * factor**2, 3, act=None, norm=False)
    x = g.add("DepthToSpace", x, blocksize=factor, mode=net.pick("DCR", "CRD"))
    return [g.add("Add", x, net.upsample(image, factor, net.pick("nearest", "linear"))) if net.chance(0.4) else x]


def generator(net: Net) -> list[str]:
    """Norms of each picture (instance or pixel norm), borders that mirror."""
    g, width = net.g, net.width(8)
    x = net.image()
    x = g.add("Pad", x, g.constant([0, 0, 2, 2, 0, 0, 2, 2], np.int64), mode="reflect")
    x = net.conv(x, width, 5, act=None, norm=False)
    for _ in range(net.count(1, 3)):
        if net.chance(0.5):
            scale = g.constant(net.random.uniform(0.2, 2, width))
            x = g.add("InstanceNormalization", x, scale, g.constant(net.random.standard_normal(width) * 0.3))
        else:
            mean = g.add("ReduceMean", g.add("Mul", x, x), axes=[1])
            x = g.add("Div", x, g.add("Sqrt", g.add("Add", mean, g.constant(1e-8))))
        x = net.conv(net.activation(x, net.act), width, 3, act=None, norm=False)
    return [net.conv(x, 3, 3, act="Tanh", norm=False)]


FAMILIES = (unet, deeplab, pyramid_pool, super_resolution, generator)
