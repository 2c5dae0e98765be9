"""Networks that give pictures: U-Net, DeepLab, pyramids, super-resolution."""

from __future__ import annotations

import numpy as np

from .blocks import Net
from .tokens import attention


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
    parts.append(g.add("Resize", y, "", "", net.sizes(y, *size[2:]), **how))
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
        parts.append(
            g.add("Resize", y, "", "", net.sizes(y, h, w), mode="linear", coordinate_transformation_mode="half_pixel")
        )
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


def _normed_block(net: Net, x: str, out: int, time: str, groups: int) -> str:
    """Norms of groups before each window, a vector of the time between them."""
    g = net.g
    y = net.conv(net.activation(net.group_norm(x, groups), "swish"), out, act=None, norm=False)
    moved = g.add("Unsqueeze", net.dense(time, out), g.constant([2, 3], int))
    y = net.activation(net.group_norm(g.add("Add", y, moved), groups), "swish")
    y = net.conv(y, out, act=None, norm=False)
    return g.add("Add", x if net.channels(x) == out else net.conv(x, out, 1, act=None, norm=False), y)


def diffusion(net: Net) -> list[str]:
    """A U-Net that removes noise: group norms, a time as waves, attention of the places of the smallest map."""
    g, groups = net.g, net.pick(2, 4, 8)
    width = groups * net.pick(2, 4)
    image = net.image(net.pick(3, 4))
    step = g.input("step", net.random.uniform(0, 999, (net.batch, 1)).astype(np.float32))
    angles = g.add("Mul", step, g.constant(10000.0 ** -(np.arange(width // 2) / (width // 2))[None]))
    time = g.add("Concat", g.add("Sin", angles), g.add("Cos", angles), axis=1)
    time = net.activation(net.dense(net.activation(net.dense(time, 2 * width), "swish"), 2 * width), "swish")
    x, skips = net.conv(image, width, act=None, norm=False), []
    h, w = (size // 4 * 4 for size in g.shape(x)[2:])
    x = net.slice(net.slice(x, 0, h, 2), 0, w, 3)
    for level in range(net.count(1, 2)):
        x = _normed_block(net, x, width << level, time, groups)
        skips.append(x)
        x = net.conv(x, width << level, 3, 2, act=None, norm=False)
    c, h, w = g.shape(x)[1:]
    y = g.add("Transpose", net.reshape(net.group_norm(x, groups), [0, c, h * w]), perm=[0, 2, 1])
    y = g.add("Transpose", attention(net, y, net.pick(1, 2))[0], perm=[0, 2, 1])
    x = _normed_block(net, g.add("Add", x, net.reshape(y, [0, c, h, w])), c, time, groups)
    for skip in reversed(skips):
        x = net.conv(net.upsample(x), net.channels(x), act=None, norm=False)
        h, w = g.shape(skip)[2:]
        x = g.add("Concat", net.slice(net.slice(x, 0, h, 2), 0, w, 3), skip, axis=1)
        x = _normed_block(net, x, net.channels(skip), time, groups)
    x = net.activation(net.group_norm(x, groups), "swish")
    return [net.conv(x, net.channels(image), act=None, norm=False)]


FAMILIES = (unet, deeplab, pyramid_pool, super_resolution, generator, diffusion)
