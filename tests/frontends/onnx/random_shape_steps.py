"""Steps of `random_graphs` that move, choose and repeat values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from random_graphs import LARGEST, Graph, Tensor, step


@step()
def reshape(g: Graph, x: Tensor) -> Tensor:
    if x.rank and g.number(0, 3) == 3:
        axis = g.number(0, x.rank)
        shape: tuple[int, ...] = (int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))
        return replace(g.add("Flatten", [x.name], shape, axis=axis), exact=x.exact)
    rest, sizes = x.size, []
    for _ in range(g.number(0, 3)):
        factor = g.pick(*(d for d in range(1, rest + 1) if rest % d == 0))
        sizes.append(factor)
        rest //= factor
    shape = (*sizes, rest)
    asked = list(shape)
    if g.maybe():
        asked[g.number(0, len(asked) - 1)] = -1
    asked = [0 if i < x.rank and x.shape[i] == d and g.maybe() else d for i, d in enumerate(asked)]
    return replace(g.add("Reshape", [x.name, g.ints(*asked)], shape), exact=x.exact)


@step(2)
def transpose(g: Graph, x: Tensor) -> Tensor | None:
    if not x.rank:
        return None
    order = [int(a) for a in g.random.permutation(x.rank)]
    return replace(g.add("Transpose", [x.name], [x.shape[a] for a in order], perm=order), exact=x.exact)


@step()
def squeeze(g: Graph, x: Tensor) -> Tensor | None:
    ones = [a for a, d in enumerate(x.shape) if d == 1]
    if not ones:
        return None
    axes = [a for a in ones if g.maybe()] or ones[:1]
    return _with_axes(g, "Squeeze", x, axes, [d for a, d in enumerate(x.shape) if a not in axes])


@step()
def unsqueeze(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank > 4:
        return None
    axis = g.number(0, x.rank)
    return _with_axes(g, "Unsqueeze", x, [axis], [*x.shape[:axis], 1, *x.shape[axis:]])


def _with_axes(g: Graph, op: str, x: Tensor, axes: list[int], shape: list[int]) -> Tensor:
    if g.opset >= 13:
        return replace(g.add(op, [x.name, g.ints(*axes)], shape), exact=x.exact)
    return replace(g.add(op, [x.name], shape, axes=axes), exact=x.exact)


@step(3)
def concat(g: Graph, x: Tensor) -> Tensor | None:
    if not x.rank or x.size > LARGEST:
        return None
    axis = g.number(0, x.rank - 1)
    fitting = [t for t in g.tensors if t.rank == x.rank and _without(t, axis) == _without(x, axis)]
    others = [g.pick(*fitting) for _ in range(g.number(1, 2))] if fitting else [x]
    shape = list(x.shape)
    shape[axis] += sum(t.shape[axis] for t in others)
    operands = [x.name, *(t.name for t in others)]
    if g.maybe():
        operands.append(g.weights(*x.shape))
        shape[axis] += x.shape[axis]
    return g.add("Concat", operands, shape, axis=axis - (x.rank if g.maybe() else 0))


def _without(x: Tensor, axis: int) -> tuple[int, ...]:
    return x.shape[:axis] + x.shape[axis + 1 :]


@step(2)
def split(g: Graph, x: Tensor) -> list[Tensor] | None:
    axis = g.axis(x) if x.rank else 0
    if not x.rank or x.shape[axis] < 2:
        return None
    first = g.number(1, x.shape[axis] - 1)
    sizes = [first, x.shape[axis] - first]
    shapes = [[size if a == axis % x.rank else d for a, d in enumerate(x.shape)] for size in sizes]
    if g.opset >= 13:
        made = g.many("Split", [x.name, g.ints(*sizes)], shapes, axis=axis)
    else:
        made = g.many("Split", [x.name], shapes, axis=axis, split=sizes)
    return [replace(t, exact=x.exact) for t in made]


@step(2)
def slice_(g: Graph, x: Tensor) -> Tensor | None:
    if not x.rank:
        return None
    axes = g.axes(x)
    starts, ends, steps, shape = [], [], [], list(x.shape)
    for axis in axes:
        size = x.shape[axis]
        stride = g.pick(1, 1, 2, -1)
        low, high = sorted((g.number(0, size - 1), g.number(0, size - 1)))
        start, end = (low, high + 1) if stride > 0 else (high, low - 1)
        shape[axis] = len(range(start, end, stride))
        starts.append(start - size if g.maybe() else start)
        ends.append(-(2**31) if end < 0 else 2**40 if end == size and g.maybe() else end)
        steps.append(stride)
    operands = [x.name, *(g.ints(*part) for part in (starts, ends, axes, steps))]
    return replace(g.add("Slice", operands, shape), exact=x.exact)


@step(2)
def pad(g: Graph, x: Tensor) -> Tensor | None:
    if not x.rank or x.size > LARGEST:
        return None
    mode = g.pick("constant", "constant", "reflect", "edge")
    most = 2 if mode != "reflect" else min(2, min(x.shape) - 1)
    amounts = [g.number(0, most) for _ in range(2 * x.rank)]
    shape = [d + amounts[a] + amounts[a + x.rank] for a, d in enumerate(x.shape)]
    value = [g.constant(np.float32(g.pick(0.0, 1.5, -2.0)))] if mode == "constant" and g.maybe() else []
    return replace(g.add("Pad", [x.name, g.ints(*amounts), *value], shape, mode=mode), exact=x.exact)


@step(2)
def gather(g: Graph, x: Tensor) -> Tensor | None:
    if not x.rank or x.size > LARGEST:
        return None
    axis = g.axis(x)
    size = x.shape[axis]
    lead = g.pick((), (1,), (2,), (3,), (2, 2))
    indices = g.random.integers(-size, size, lead)
    at = axis % x.rank
    shape = (*x.shape[:at], *lead, *x.shape[at + 1 :])
    if len(shape) > 5:
        return None
    return replace(
        g.add("Gather", [x.name, g.constant(np.asarray(indices, np.int64))], shape, axis=axis), exact=x.exact
    )


@step()
def gather_elements(g: Graph, x: Tensor) -> Tensor | None:
    if not x.rank:
        return None
    axis = g.axis(x)
    shape = [d if a == axis % x.rank else g.number(1, d) for a, d in enumerate(x.shape)]
    shape[axis] = g.number(1, 3)
    indices = g.random.integers(-x.shape[axis], x.shape[axis], shape)
    operands = [x.name, g.constant(np.asarray(indices, np.int64))]
    return replace(g.add("GatherElements", operands, shape, axis=axis), exact=x.exact)


@step()
def triangle(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank < 2 or g.opset < 14:
        return None
    offset = [g.constant(np.int64(g.number(-2, 2)))] if g.maybe() else []
    return replace(g.add("Trilu", [x.name, *offset], x.shape, upper=int(g.maybe())), exact=x.exact)


@step()
def flatten_by_shape(g: Graph, x: Tensor) -> Tensor | None:
    """What exporters write for view(size(0), -1): Shape, Gather, Unsqueeze, Concat, Reshape."""
    if x.rank < 2:
        return None
    shape = g.add("Shape", [x.name], (x.rank,))
    first = g.add("Gather", [shape.name, g.constant(np.int64(0))], (), axis=0)
    first = _with_axes(g, "Unsqueeze", first, [0], [1])
    asked = g.add("Concat", [first.name, g.ints(-1)], (2,), axis=0)
    return replace(g.add("Reshape", [x.name, asked.name], (x.shape[0], x.size // x.shape[0])), exact=x.exact)


@step()
def cast(g: Graph, x: Tensor) -> Tensor:
    """To another type and back; to integers only without rounding before it."""
    kinds = (11,) if not x.exact else (11, 6, 7)
    other = g.add("Cast", [x.name], x.shape, to=g.pick(*kinds))
    return replace(g.add("Cast", [other.name], x.shape, to=1), exact=x.exact)


@step()
def repeat(g: Graph, x: Tensor) -> Tensor | None:
    if not x.rank or x.size > LARGEST // 4:
        return None
    if g.maybe():
        reps = [g.number(1, 2) for _ in x.shape]
        return replace(g.add("Tile", [x.name, g.ints(*reps)], [d * r for d, r in zip(x.shape, reps)]), exact=x.exact)
    shape = [g.number(1, 3) if d == 1 else d for d in x.shape]
    return replace(g.add("Expand", [x.name, g.ints(*shape)], shape), exact=x.exact)


@step(image=True)
def blocks(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank != 4:
        return None
    n, c, h, w = x.shape
    if c % 4 == 0:
        mode = g.pick("DCR", "CRD")
        out = g.add("DepthToSpace", [x.name], (n, c // 4, h * 2, w * 2), blocksize=2, mode=mode)
    elif h % 2 == w % 2 == 0:
        out = g.add("SpaceToDepth", [x.name], (n, c * 4, h // 2, w // 2), blocksize=2)
    else:
        return None
    return replace(out, exact=x.exact)


@step(image=True)
def resize(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank != 4 or x.size > LARGEST // 4:
        return None
    mode = g.pick("nearest", "linear", "cubic")
    where = g.pick("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": where}
    if mode == "nearest":
        attributes["nearest_mode"] = g.pick("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    sizes = [g.number(1, 2 * d) for d in x.shape[2:]]
    shape = (*x.shape[:2], *sizes)
    if g.maybe():
        factors = [g.pick(1.0, 2.0, 3.0) for _ in range(2)]
        shape = (*x.shape[:2], *(int(d * f) for d, f in zip(x.shape[2:], factors)))
        scales = g.constant(np.asarray([1, 1, *factors], np.float32))
        return g.add("Resize", [x.name, g.constant(np.zeros(0, np.float32)), scales], shape, **attributes)
    empty = g.constant(np.zeros(0, np.float32))
    return g.add("Resize", [x.name, empty, "" if g.opset >= 13 else empty, g.ints(*shape)], shape, **attributes)


@step()
def scatter(g: Graph, x: Tensor) -> Tensor | None:
    """New values in some positions of the leading axis."""
    if not x.rank:
        return None
    count = g.number(1, x.shape[0])
    rows = g.random.permutation(x.shape[0])[:count].astype(np.int64)
    operands = [x.name, g.constant(rows[:, None]), g.weights(count, *x.shape[1:])]
    return replace(g.add("ScatterND", operands, x.shape), exact=x.exact)


@step()
def eight_bits(g: Graph, x: Tensor) -> Tensor | None:
    """QuantizeLinear and back, per tensor or per channel; rounding it allows only tensors without any before."""
    if not x.exact or x.rank < 2:
        return None
    channels = g.opset >= 13 and g.maybe()
    scale = g.constant(g.random.uniform(0.01, 0.05, x.shape[1] if channels else ()).astype(np.float32))
    kind = g.pick(np.int8, np.uint8)
    zero = g.constant(g.random.integers(0, 20, x.shape[1] if channels else ()).astype(kind))
    axis = {"axis": 1} if channels else {}
    codes = g.add("QuantizeLinear", [x.name, scale, zero], x.shape, **axis)
    return g.add("DequantizeLinear", [codes.name, scale, zero], x.shape, **axis)
