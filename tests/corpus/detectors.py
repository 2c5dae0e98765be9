"""Networks that find things: short backbones, necks and heads as in YOLO v3 to v11, SSD, RetinaNet, CenterNet."""

from __future__ import annotations

import numpy as np

from .blocks import Net


def _backbone(net: Net, levels: int) -> list[str]:
    """Maps at strides 4, 8, ..."""
    width, maps = net.width(12), []
    x = net.conv(net.image(), net.width(8), 3, 2)
    for _ in range(levels):
        x = net.conv(x, width, 3, 2)
        x = c2f(net, x, width) if net.chance(0.5) else net.conv(net.conv(x, width // 2, 1), width)
        maps.append(x)
        width = width * 3 // 2
    return maps


def c2f(net: Net, x: str, out: int) -> str:
    """YOLOv8's block: halves, of which one goes on; all are joined."""
    half = max(out // 2, 2)
    parts = net.split(net.conv(x, 2 * half, 1), [half, half])
    for _ in range(net.count(1, 2)):
        y = net.conv(net.conv(parts[-1], half), half)
        parts.append(net.g.add("Add", parts[-1], y) if net.chance(0.5) else y)
    return net.conv(net.g.add("Concat", *parts, axis=1), out, 1)


def sppf(net: Net, x: str) -> str:
    """Three poolings one after the other."""
    parts = [net.conv(x, max(2, net.channels(x) // 2), 1)]
    for _ in range(3):
        parts.append(net.pool(parts[-1], "MaxPool", 5, 1))
    return net.conv(net.g.add("Concat", *parts, axis=1), net.channels(x), 1)


def _above(net: Net, x: str, fine: str) -> str:
    """A map in the size of a finer one."""
    size = net.g.shape(fine)[2:]
    if net.g.shape(x)[2] * 2 == size[0] and net.g.shape(x)[3] * 2 == size[1]:
        return net.upsample(x)
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return net.g.add("Resize", x, "", "", net.sizes(x, *size), **how)


def _neck(net: Net, maps: list[str]) -> list[str]:
    """Downwards by joining; sometimes upwards again."""
    maps = [*maps[:-1], sppf(net, maps[-1])]
    for i in range(len(maps) - 1, 0, -1):
        joined = net.g.add("Concat", _above(net, maps[i], maps[i - 1]), maps[i - 1], axis=1)
        maps[i - 1] = c2f(net, joined, net.channels(maps[i - 1]))
    if net.chance(0.4):
        for i in range(1, len(maps)):
            down = net.conv(maps[i - 1], net.channels(maps[i - 1]), 3, 2)
            if net.g.shape(down)[2:] == net.g.shape(maps[i])[2:]:
                maps[i] = c2f(net, net.g.add("Concat", down, maps[i], axis=1), net.channels(maps[i]))
    return maps


def yolo_anchors(net: Net) -> list[str]:
    """v3 to v7: sigmoids, boxes from grids and anchors."""
    g, outs, fields = net.g, [], 5 + net.count(1, 6)
    for x in _neck(net, _backbone(net, net.count(1, 3))):
        y = net.conv(x, 3 * fields, 1, act=None, norm=False)
        n, _, h, w = g.shape(y)
        y = g.add("Transpose", net.reshape(y, [n, 3, fields, h, w]), perm=[0, 1, 3, 4, 2])
        if net.chance(0.5):
            outs.append(y)
            continue
        xy, wh, rest = net.split(g.add("Sigmoid", y), [2, 2, fields - 4], axis=4)
        grid = np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1)[None, None]
        xy = g.add("Add", g.add("Mul", xy, g.constant(2)), g.constant(grid - 0.5))
        wh = g.add("Pow", g.add("Mul", wh, g.constant(2)), g.constant(2))
        wh = g.add("Mul", wh, g.constant(net.random.uniform(1, 8, (1, 3, 1, 1, 2))))
        y = g.add("Concat", g.add("Mul", xy, g.constant(8)), wh, rest, axis=4)
        outs.append(net.reshape(y, [n, -1, fields]))
    return outs


def yolo_dfl(net: Net) -> list[str]:
    """v8 to v11: a distance is the mean of a distribution."""
    g, bins, classes, parts = net.g, net.pick(4, 8, 16), net.count(1, 10), []
    for x in _neck(net, _backbone(net, net.count(1, 3))):
        box = net.conv(net.conv(x, net.width(16)), 4 * bins, 1, act=None, norm=False)
        middle = net.conv(net.depthwise(x), net.width(16), 1) if net.chance(0.5) else net.conv(x, net.width(16))
        y = g.add("Concat", box, net.conv(middle, classes, 1, act=None, norm=False), axis=1)
        parts.append(net.reshape(y, [0, 4 * bins + classes, -1]))
    y = g.add("Concat", *parts, axis=2) if len(parts) > 1 else parts[0]
    box, scores = net.split(y, [4 * bins, classes])
    n, _, count = g.shape(box)
    y = g.add("Transpose", net.reshape(box, [n, 4, bins, count]), perm=[0, 2, 1, 3])
    y = g.add("Conv", net.softmax(y, 1), g.constant(np.arange(bins).reshape(1, bins, 1, 1)), kernel_shape=[1, 1])
    low, high = net.split(net.reshape(y, [n, 4, count]), [2, 2])
    anchors = g.constant(net.random.uniform(0, 8, (1, 2, count)))
    low, high = g.add("Sub", anchors, low), g.add("Add", anchors, high)
    centre = g.add("Div", g.add("Add", low, high), g.constant(2))
    box = g.add("Mul", g.add("Concat", centre, g.add("Sub", high, low), axis=1), g.constant(8))
    return [g.add("Concat", box, g.add("Sigmoid", scores), axis=1)]


def ssd(net: Net) -> list[str]:
    """Channels go last in each head; all places are joined."""
    g, classes, boxes, scores = net.g, net.count(2, 6), [], []
    for x in _backbone(net, net.count(1, 3)):
        if net.chance(0.2):  # places in length one, with a factor for each channel
            length = g.add(
                "Sqrt", g.add("Add", g.add("ReduceSum", g.add("Mul", x, x), g.constant([1], int)), g.constant(1e-6))
            )
            x = g.add("Mul", g.add("Div", x, length), g.constant(net.random.uniform(5, 20, (1, net.channels(x), 1, 1))))
        for found, fields in ((boxes, 4), (scores, classes)):
            y = net.conv(x, 4 * fields, net.pick(1, 3), act=None, norm=False)
            found.append(net.reshape(g.add("Transpose", y, perm=[0, 2, 3, 1]), [0, -1, fields]))
    outs = [g.add("Concat", *each, axis=1) if len(each) > 1 else each[0] for each in (boxes, scores)]
    return [outs[0], net.softmax(outs[1])]


def retinanet(net: Net) -> list[str]:
    """A pyramid of sums."""
    g, width = net.g, net.width(16)
    maps = [net.conv(x, width, 1, act=None, norm=False) for x in _backbone(net, net.count(2, 3))]
    for i in range(len(maps) - 1, 0, -1):
        maps[i - 1] = g.add("Add", maps[i - 1], _above(net, maps[i], maps[i - 1]))
    return [net.conv(net.conv(x, width), 9, 3, act="Sigmoid", norm=False) for x in maps]


def centernet(net: Net) -> list[str]:
    """Deconvolutions, a map of peaks."""
    x = _backbone(net, 2)[-1]
    for _ in range(net.count(1, 2)):
        x = net.deconv(x, net.width(12), net.pick(2, 4))
    heat = net.conv(net.conv(x, net.width(12)), net.count(1, 5), 1, act="Sigmoid", norm=False)
    peak = net.g.add("Equal", net.pool(heat, "MaxPool", 3, 1), heat)
    outs = [net.conv(net.conv(x, net.width(12)), 2, 1, act=None, norm=False)]
    if net.chance(0.3):
        return [net.g.add("Mul", heat, net.g.add("Cast", peak, to=1)), *outs]
    return [heat, *outs]


def yolo_focus(net: Net) -> list[str]:
    """v5, v7 and X: pixels become channels by slices, blocks whose every layer is joined, heads apart."""
    g, image = net.g, net.image()
    h, w = (size // 2 * 2 for size in g.shape(image)[2:])
    rows = [net.slice(image, i, h, 2, 2) for i in (0, 1)]
    x = g.add("Concat", *(net.slice(row, j, w, 3, 2) for j in (0, 1) for row in rows), axis=1)
    x, outs, width = net.conv(x, net.width(12)), [], net.width(12)
    for _ in range(net.count(1, 3)):
        if net.chance(0.5):  # v7's other way down
            ways = [net.conv(net.pool(x), width // 2 + 1, 1), net.conv(net.conv(x, width // 2 + 1, 1), width, 3, 2)]
            size = [min(sizes) for sizes in zip(*(g.shape(way)[2:] for way in ways))]
            ways = [net.slice(net.slice(way, 0, size[0], 2), 0, size[1], 3) for way in ways]
            x = g.add("Concat", *ways, axis=1)
        else:
            x = net.conv(x, width, 3, 2)
        parts = [net.conv(x, width // 2 + 1, 1), net.conv(x, width // 2 + 1, 1)]
        for _ in range(net.count(1, 2)):
            parts.append(net.conv(net.conv(parts[-1], width // 2 + 1), width // 2 + 1))
        x = net.conv(g.add("Concat", *reversed(parts), axis=1), width, 1)
        box, seen = (net.conv(net.conv(x, width), n, 1, act=None, norm=False) for n in (4, 1))
        kinds = net.conv(net.conv(x, width), net.count(1, 6), 1, act="Sigmoid", norm=False)
        y = g.add("Concat", box, g.add("Sigmoid", seen), kinds, axis=1)
        outs.append(net.reshape(y, [0, g.shape(y)[1], -1]))
    kinds = net.pick(1, 3)
    outs = [net.slice(each, 0, 5 + kinds) for each in outs if g.shape(each)[1] >= 5 + kinds] or outs[:1]
    joined = g.add("Concat", *outs, axis=2) if len({g.shape(each)[1] for each in outs}) == 1 else outs[0]
    return [g.add("Transpose", joined, perm=[0, 2, 1])]


def yolo_attention(net: Net) -> list[str]:
    """v10 and v11: places of the smallest map attend to each other, values get a depthwise window; one box each."""
    g, heads = net.g, net.pick(1, 2)
    x = _backbone(net, 2)[-1]
    c, n = heads * net.pick(8, 16), net.batch
    h, w = g.shape(x)[2:]
    first, y = net.split(net.conv(x, 2 * c, 1), [c, c])
    mixed = net.reshape(net.conv(y, 2 * c, 1, act=None), [n, heads, 2 * c // heads, h * w])
    keys = c // heads // 2
    q, k, v = net.split(mixed, [keys, keys, c // heads], axis=2)
    scores = g.add("MatMul", g.add("Transpose", q, perm=[0, 1, 3, 2]), k)
    scores = net.softmax(g.add("Mul", scores, g.constant(keys**-0.5)))
    read = g.add("MatMul", v, g.add("Transpose", scores, perm=[0, 1, 3, 2]))
    places = [net.reshape(each, [n, c, h, w]) for each in (read, v)]
    y = g.add("Add", y, net.conv(g.add("Add", places[0], net.depthwise(places[1], act=None)), c, 1, act=None))
    y = g.add("Add", y, net.conv(net.conv(y, 2 * c, 1), c, 1, act=None))
    x = net.conv(g.add("Concat", first, y, axis=1), net.width(24), 1)
    scores = net.reshape(net.conv(x, 3, 1, act="Sigmoid", norm=False), [n, 3, -1])
    if net.chance(0.3):
        best = g.add("ReduceMax", scores, axes=[1])
        return [net.reshape(net.conv(x, 4, 1, act=None, norm=False), [n, 4, -1]), best]
    return [net.reshape(net.conv(x, 4, 1, act=None, norm=False), [n, 4, -1]), scores]


def bifpn(net: Net) -> list[str]:
    """EfficientDet: sums with shares that are learned, depthwise windows."""
    g, width = net.g, net.width(16)
    maps = [net.conv(x, width, 1, act=None) for x in _backbone(net, 3)]

    def fused(*xs: str) -> str:
        shares = net.random.uniform(0, 1, len(xs))
        parts = [g.add("Mul", x, g.constant(share / (shares.sum() + 1e-4))) for x, share in zip(xs, shares)]
        y = parts[0]
        for part in parts[1:]:
            y = g.add("Add", y, part)
        return net.conv(net.depthwise(net.activation(y, "swish"), act=None, dilation=1), width, 1, act=None)

    middle = fused(maps[1], _above(net, maps[2], maps[1]))
    maps[0] = fused(maps[0], _above(net, middle, maps[0]))
    down = net.pool(maps[0], "MaxPool", 3, 2)
    if g.shape(down) == g.shape(middle):
        maps[1] = fused(maps[1], middle, down)
    outs = [net.conv(net.depthwise(x, act=None), 9 * 2, 1, act=None, norm=False) for x in maps]
    flat = [net.reshape(g.add("Transpose", x, perm=[0, 2, 3, 1]), [net.batch, -1, 2]) for x in outs]
    return [g.add("Sigmoid", g.add("Concat", *flat, axis=1))]


FAMILIES = (yolo_anchors, yolo_dfl, yolo_focus, yolo_attention, bifpn, ssd, retinanet, centernet)
