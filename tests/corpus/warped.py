"""Networks that read a map where they say: optical flow, deformable attention, spatial transformers."""

from __future__ import annotations

import numpy as np

from .blocks import Net
from .classifiers import head


def _places(h: int, w: int) -> np.ndarray:
    """[1, h, w, 2]: (x, y) of each place, from -1 to 1 at the middles of the outermost."""
    return np.stack(np.meshgrid(np.linspace(-1, 1, w), np.linspace(-1, 1, h)), -1)[None]


def _sampled(net: Net, x: str, grid: str) -> str:
    """Values of a map at places: PyTorch's defaults mostly."""
    mode, padding = net.pick("bilinear", "bilinear", "nearest"), net.pick("zeros", "zeros", "border", "reflection")
    return net.g.add("GridSample", x, grid, mode=mode, padding_mode=padding, align_corners=net.count(0, 1))


def flow(net: Net) -> list[str]:
    """Where each place of one picture is in another: read there, compared, said better."""
    g, width = net.g, net.width(12)
    first, second = net.split(net.image(6), [3, 3])
    maps = [net.conv(net.conv(each, width, 3, 2), width) for each in (first, second)]
    h, w = g.shape(maps[0])[2:]
    moved = net.conv(g.add("Concat", *maps, axis=1), 2, act="Tanh", norm=False)
    for _ in range(net.count(1, 2)):
        steps = g.add("Transpose", g.add("Mul", moved, g.constant(net.pick(0.05, 0.3))), perm=[0, 2, 3, 1])
        there = _sampled(net, maps[1], g.add("Add", steps, g.constant(_places(h, w))))
        unlike = g.add("Sub", maps[0], there) if net.chance(0.5) else g.add("Mul", maps[0], there)
        y = net.conv(g.add("Concat", unlike, moved, axis=1), width)
        moved = g.add("Add", moved, net.conv(y, 2, act=None, norm=False))
    return [net.upsample(moved, 2, "linear")]


def deformable(net: Net) -> list[str]:
    """Queries read a map at a few places each that they say, and weigh what they read."""
    g, heads, points, count = net.g, net.pick(1, 2), net.pick(2, 4), net.pick(5, 12)
    c, n = heads * net.pick(8, 16), net.batch
    x = net.conv(net.conv(net.image(), net.width(8), 3, 2), c, 3, 2)
    h, w = g.shape(x)[2:]
    values = g.add("Reshape", net.conv(x, c, 1, act=None, norm=False), g.constant([-1, c // heads, h, w], int))
    query = g.add("Expand", g.constant(net.random.standard_normal((1, count, c))), g.constant([n, count, c], int))
    query = g.add("Add", query, g.add("Unsqueeze", net.flat(net.mean(x)), g.constant([1], int)))
    for _ in range(net.count(1, 2)):
        middle = g.add("Sigmoid", net.dense(query, 2))
        middle = g.add("Unsqueeze", middle, g.constant([2, 3], int))
        steps = net.reshape(net.dense(query, heads * points * 2), [n, count, heads, points, 2])
        steps = g.add("Div", steps, g.constant(np.array([w, h]) * 2))
        places = g.add("Sub", g.add("Mul", g.add("Add", middle, steps), g.constant(2)), g.constant(1))
        places = g.add("Transpose", places, perm=[0, 2, 1, 3, 4])
        read = g.add(
            "GridSample",
            values,
            net.reshape(places, [-1, count, points, 2]),
            mode="bilinear",
            padding_mode="zeros",
            align_corners=0,
        )
        shares = net.softmax(net.reshape(net.dense(query, heads * points), [n, count, heads, points]))
        shares = net.reshape(g.add("Transpose", shares, perm=[0, 2, 1, 3]), [-1, 1, count, points])
        read = g.add("ReduceSum", g.add("Mul", read, shares), g.constant([-1], int), keepdims=0)
        read = g.add("Transpose", net.reshape(read, [n, c, count]), perm=[0, 2, 1])
        query = net.layer_norm(g.add("Add", query, net.dense(read, c)))
    return [net.dense(query, 5), g.add("Sigmoid", net.dense(query, 4))]


def spatial_transformer(net: Net) -> list[str]:
    """A picture turned and scaled as a small net says, then named."""
    g = net.g
    image = net.image(net.pick(1, 3))
    h, w = net.pick((16, 16), net.size)
    turn = net.dense(net.flat(net.mean(net.conv(net.conv(image, net.width(8), 3, 2), net.width(12), 3, 2))), 6)
    turn = g.add("Add", g.add("Mul", g.add("Tanh", turn), g.constant(0.3)), g.constant([1, 0, 0, 0, 1, 0]))
    places = np.concatenate([_places(h, w), np.ones((1, h, w, 1))], -1).reshape(1, h * w, 3)
    grid = g.add("MatMul", g.constant(places), g.add("Transpose", net.reshape(turn, [-1, 2, 3]), perm=[0, 2, 1]))
    x = _sampled(net, image, net.reshape(grid, [-1, h, w, 2]))
    return head(net, net.conv(net.conv(x, net.width(12), 3, 2), net.width(16), 3, 2))


FAMILIES = (flow, deformable, spatial_transformer)
