"""Steps of `random_graphs` that compute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from random_graphs import LARGEST, Graph, Tensor, step
from reference_faults import miscounts_padding, refuses_layer_norm_of_one

SMOOTH: dict[str, tuple[int, dict[str, tuple[float, float]]]] = {
    "Relu": (1, {}),
    "LeakyRelu": (1, {"alpha": (0.0, 0.9)}),
    "Elu": (1, {"alpha": (0.2, 1.5)}),
    "Selu": (1, {}),
    "Celu": (12, {"alpha": (0.5, 2.0)}),
    "Sigmoid": (1, {}),
    "HardSigmoid": (1, {"alpha": (0.1, 0.4), "beta": (0.2, 0.7)}),
    "HardSwish": (14, {}),
    "Tanh": (1, {}),
    "Softplus": (1, {}),
    "Softsign": (1, {}),
    "Mish": (18, {}),
    "Gelu": (20, {}),
    "Erf": (9, {}),
    "Sin": (7, {}),
    "Cos": (7, {}),
    "Atan": (7, {}),
    "Asinh": (9, {}),
    "Neg": (6, {}),
    "Abs": (6, {}),
    "Identity": (1, {}),
    "Dropout": (7, {}),
}
"""Op -> (first opset, float attributes and their ranges)."""


@step(6)
def activation(g: Graph, x: Tensor) -> Tensor | None:
    op = g.pick(*SMOOTH)
    since, ranges = SMOOTH[op]
    if g.opset < since:
        return None
    attributes = {name: float(g.random.uniform(*bounds)) for name, bounds in ranges.items() if g.maybe()}
    out = g.add(op, [x.name], x.shape, **attributes)
    return replace(out, exact=x.exact and op in ("Relu", "Neg", "Abs", "Identity", "Dropout"))


@step()
def jump(g: Graph, x: Tensor) -> Tensor | None:
    if not x.exact:
        return None
    return replace(g.add(g.pick("Floor", "Ceil", "Round", "Sign"), [x.name], x.shape), exact=True)


@step()
def clip(g: Graph, x: Tensor) -> Tensor:
    low, high = g.pick((-1.0, 1.0), (0.0, 6.0), (None, 0.5), (-0.25, None), (0.0, None))
    bounds = ["" if b is None else g.constant(np.float32(b)) for b in (low, high)]
    return replace(g.add("Clip", [x.name, *bounds], x.shape), exact=x.exact)


@step()
def prelu(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank < 2:
        return None
    shape = g.pick((1,), (x.shape[1], *(1,) * (x.rank - 2)))
    return g.add("PRelu", [x.name, g.weights(*shape)], x.shape)


@step()
def with_domain(g: Graph, x: Tensor) -> Tensor:
    """Functions that need a positive or a small operand."""
    op = g.pick("Sqrt", "Log", "Reciprocal", "Exp")
    if op == "Exp":
        return g.add(op, [g.add("Tanh", [x.name], x.shape).name], x.shape)
    positive = g.add("Abs", [x.name], x.shape)
    above = g.add("Add", [positive.name, g.constant(np.float32(0.5))], x.shape)
    return g.add(op, [above.name], x.shape)


# -- two operands -----------------------------------------------------------------------------------------------------
def partner(g: Graph, x: Tensor) -> Tensor | None:
    """A tensor that broadcasts with `x` without enlarging it."""
    fitting = [t for t in g.tensors if _broadcasts(t.shape, x.shape)]
    return g.pick(*fitting) if fitting else None


def _broadcasts(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    if len(small) > len(large):
        return False
    return all(s in (1, d) for s, d in zip(small[::-1], large[::-1]))


def constant_shape(g: Graph, x: Tensor) -> tuple[int, ...]:
    """A shape that broadcasts to that of `x`: some axes 1, some leading ones missing."""
    kept = [d if g.maybe() else 1 for d in x.shape]
    return tuple(kept[g.number(0, x.rank) :])


@step(4)
def binary(g: Graph, x: Tensor) -> Tensor | None:
    op = g.pick("Add", "Sub", "Mul", "Max", "Min")
    other = partner(g, x)
    if other is None:
        return None
    operands = [x.name, other.name]
    return g.add(op, operands[::-1] if g.maybe() else operands, x.shape)


@step(4)
def with_constant(g: Graph, x: Tensor) -> Tensor:
    op = g.pick("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow")
    if op == "Pow":
        base = x if g.maybe() else g.add("Abs", [x.name], x.shape)
        return g.add(op, [base.name, g.constant(np.float32(g.pick(2.0, 1.0, 3.0)))], x.shape)
    shape = constant_shape(g, x)
    operands = [x.name, g.positive(*shape) if op == "Div" else g.weights(*shape)]
    return g.add(op, operands[::-1] if op != "Div" and g.maybe() else operands, x.shape)


@step()
def several(g: Graph, x: Tensor) -> Tensor:
    others = [t.name for t in g.tensors if t.shape == x.shape][: g.number(1, 3)]
    return g.add(g.pick("Sum", "Mean", "Max", "Min"), [x.name, *others], x.shape)


@step()
def choice(g: Graph, x: Tensor) -> Tensor | None:
    """Where, its condition constant or a comparison of exact tensors."""
    other = partner(g, x)
    if other is None:
        return None
    if not x.exact:
        condition = g.constant(g.random.random(constant_shape(g, x)) > 0.5)
        return g.add("Where", [condition, x.name, other.name], x.shape)
    op = g.pick("Less", "Greater", *(("LessOrEqual", "GreaterOrEqual") if g.opset >= 12 else ()))
    compared = g.add(op, [x.name, g.constant(np.float32(0.25))], x.shape)
    if g.maybe():
        compared = g.add("Not", [compared.name], x.shape)
    return g.add("Where", [compared.name, x.name, other.name], x.shape)


# -- products ---------------------------------------------------------------------------------------------------------
@step(4, image=True)
def conv(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank not in (3, 4) or x.size > LARGEST:
        return None
    n, c = x.shape[:2]
    group = g.pick(*(d for d in (1, 1, 2, c) if c % d == 0))
    o = group * g.number(1, max(1, 6 // group))
    attributes: dict[str, Any] = {} if group == 1 else {"group": group}
    spatial, kernel = windows(g, x, attributes, dilated=True)
    if spatial is None:
        return None
    fan_in = c // group * int(np.prod(kernel))
    operands = [x.name, g.weights(o, c // group, *kernel, fan_in=fan_in)]
    operands += [g.weights(o)] if g.maybe() else []
    return g.add("Conv", operands, (n, o, *spatial), **attributes)


def windows(
    g: Graph, x: Tensor, attributes: dict[str, Any], *, dilated: bool = False, pool: bool = False
) -> tuple[tuple[int, ...] | None, list[int]]:
    """Draws kernel, strides, pads, dilations into `attributes`; gives the output's spatial shape and the kernel."""
    sizes = x.shape[2:]
    kernel = [g.number(1, min(3, size)) for size in sizes]
    attributes["kernel_shape"] = kernel
    strides = [1] * len(sizes)
    if g.maybe():
        strides = attributes["strides"] = [g.number(1, 3) for _ in sizes]
    dilations = [1] * len(sizes)
    mode = g.pick("none", "none", "pads", "SAME_UPPER", "SAME_LOWER", "VALID")
    if mode in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        attributes["auto_pad"] = mode
        if mode != "VALID":
            if pool:  # ONNX Runtime takes no pads below 0
                strides[:] = [min(s, k) for s, k in zip(strides, kernel)]
            return tuple(-(-size // s) for size, s in zip(sizes, strides)), kernel
    elif dilated and g.maybe():
        dilations = attributes["dilations"] = [g.number(1, 2) for _ in sizes]
    pads = [0] * (2 * len(sizes))
    if mode == "pads":
        pads = attributes["pads"] = [g.number(0, k - 1 if pool else 2) for k in (*kernel, *kernel)]
    spans = [
        size + before + after - d * (k - 1) - 1
        for size, before, after, d, k in zip(sizes, pads, pads[len(sizes) :], dilations, kernel)
    ]
    if min(spans) < 0:
        return None, kernel
    if pool and mode != "VALID" and g.number(0, 3) == 0:
        attributes["ceil_mode"] = 1
        counts = [-(-span // s) + 1 for span, s in zip(spans, strides)]
        # the last window must begin inside the input or the padding before it
        return tuple(
            c - 1 if (c - 1) * s >= size + before else c for c, s, size, before in zip(counts, strides, sizes, pads)
        ), kernel
    return tuple(span // s + 1 for span, s in zip(spans, strides)), kernel


@step(image=True)
def conv_transpose(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank != 4 or x.size > LARGEST // 4:
        return None
    n, c, *sizes = x.shape
    group = g.pick(*(d for d in (1, 2, c) if c % d == 0))
    o = g.number(1, 3)
    kernel, strides = [g.number(1, 3) for _ in sizes], [g.number(1, 2) for _ in sizes]
    pads = [g.number(0, k - 1) for k in (*kernel, *kernel)]
    extra = [g.number(0, s - 1) for s in strides]
    shape = [
        (d - 1) * s + k + e - pads[i] - pads[i + 2] for i, (d, s, k, e) in enumerate(zip(sizes, strides, kernel, extra))
    ]
    if min(shape) < 1:
        return None
    operands = [x.name, g.weights(c, o, *kernel, fan_in=c)] + ([g.weights(o * group)] if g.maybe() else [])
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "output_padding": extra, "group": group}
    return g.add("ConvTranspose", operands, (n, o * group, *shape), **attributes)


@step(2)
def matmul(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank < 2 or x.size > LARGEST:
        return None
    k, columns = x.shape[-1], g.number(1, 8)
    lead = x.shape[:-2] if x.rank > 2 and g.maybe() else ()
    return g.add("MatMul", [x.name, g.weights(*lead, k, columns, fan_in=k)], (*x.shape[:-1], columns))


@step()
def product_with_itself(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank < 2 or x.size > LARGEST // 4:
        return None
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    other = g.add("Transpose", [x.name], [x.shape[a] for a in order], perm=order)
    return g.add("MatMul", [x.name, other.name], (*x.shape[:-1], x.shape[-2]))


@step(2)
def gemm(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank != 2:
        return None
    flags = {"transA": int(g.maybe()), "transB": int(g.maybe())}
    m, k = x.shape[:: -1 if flags["transA"] else 1]
    n = g.number(1, 8)
    weight = g.weights(*((n, k) if flags["transB"] else (k, n)), fan_in=k)
    bias = [] if g.maybe() else [g.weights(*g.pick((n,), (1, n), (m, 1), (m, n), ()))]
    scalars = {name: float(np.float32(g.random.uniform(0.5, 2))) for name in ("alpha", "beta") if g.maybe()}
    return g.add("Gemm", [x.name, weight, *bias], (m, n), **flags, **scalars)


# -- pools, norms, reductions -----------------------------------------------------------------------------------------
@step(3, image=True)
def pool(g: Graph, x: Tensor) -> Tensor | None:
    if x.rank not in (3, 4):
        return None
    if g.number(0, 3) == 0:
        op = g.pick("GlobalAveragePool", "GlobalMaxPool")
        return g.add(op, [x.name], (*x.shape[:2], *(1,) * (x.rank - 2)))
    op = g.pick("MaxPool", "AveragePool")
    attributes: dict[str, Any] = {}
    spatial, _ = windows(g, x, attributes, dilated=op == "MaxPool", pool=True)
    if spatial is None:
        return None
    if op == "AveragePool" and not miscounts_padding(g.opset, attributes) and g.maybe():
        attributes["count_include_pad"] = 1
    return g.add(op, [x.name], (*x.shape[:2], *spatial), **attributes)


@step(2, image=True)
def normalize(g: Graph, x: Tensor) -> Tensor | None:
    op = g.pick(*("BatchNormalization",) * 2, "InstanceNormalization", "LayerNormalization", "LRN", "LpNormalization")
    if op == "LpNormalization":
        away = g.add("Add", [g.add("Abs", [x.name], x.shape).name, g.constant(np.float32(0.25))], x.shape)
        return g.add(op, [away.name], x.shape, axis=g.axis(x), p=g.pick(1, 2)) if x.rank else None
    if op == "LayerNormalization":
        if g.opset < 17 or x.rank < 1:
            return None
        axis = g.axis(x)
        shape = x.shape[axis:]
        if np.prod(shape) == 1 and refuses_layer_norm_of_one():
            return None
        bias = [g.weights(*shape)] if g.maybe() else []
        return g.add(op, [x.name, g.positive(*shape), *bias], x.shape, axis=axis, epsilon=0.01)
    if x.rank < (2 if op == "BatchNormalization" else 3) or (op == "LRN" and x.rank != 4):
        return None
    c = x.shape[1]
    if op == "LRN":
        return g.add(op, [x.name], x.shape, size=g.pick(1, 3, 5), alpha=0.01, beta=0.75, bias=1.0)
    operands = [x.name, g.positive(c), g.weights(c)]
    if op == "BatchNormalization":
        operands += [g.weights(c), g.positive(c)]
    return g.add(op, operands, x.shape, epsilon=0.01)


@step()
def softmax(g: Graph, x: Tensor) -> Tensor | None:
    if not x.rank:
        return None
    return g.add(g.pick("Softmax", "Softmax", "LogSoftmax"), [x.name], x.shape, axis=g.axis(x))


REDUCTIONS = ("Mean", "Sum", "Max", "Min", "L1", "L2", "SumSquare", "LogSumExp", "Prod")


@step(3)
def reduce(g: Graph, x: Tensor) -> Tensor | None:
    if not x.rank:
        return None
    op, axes, keep = "Reduce" + g.pick(*REDUCTIONS), g.axes(x), g.maybe()
    shape = [1 if a in axes else d for a, d in enumerate(x.shape) if keep or a not in axes]
    if g.maybe():
        axes = [a - x.rank for a in axes]
    if g.opset >= 18 or (op == "ReduceSum" and g.opset >= 13):
        return g.add(op, [x.name, g.ints(*axes)], shape, keepdims=int(keep))
    return g.add(op, [x.name], shape, axes=axes, keepdims=int(keep))


@step()
def arg(g: Graph, x: Tensor) -> Tensor | None:
    if not x.exact or not x.rank:
        return None
    axis, keep = g.axis(x), g.maybe()
    shape = [1 if a == axis % x.rank else d for a, d in enumerate(x.shape) if keep or a != axis % x.rank]
    last = {"select_last_index": 1} if g.opset >= 12 and g.maybe() else {}
    index = g.add(g.pick("ArgMax", "ArgMin"), [x.name], shape, axis=axis, keepdims=int(keep), **last)
    return replace(g.add("Cast", [index.name], shape, to=1), exact=True)


@step()
def running_sum(g: Graph, x: Tensor) -> Tensor | None:
    if not x.rank:
        return None
    flags = {"exclusive": int(g.maybe()), "reverse": int(g.maybe())}
    return g.add("CumSum", [x.name, g.constant(np.int64(g.axis(x)))], x.shape, **flags)


@step()
def largest(g: Graph, x: Tensor) -> list[Tensor] | None:
    if not x.exact or not x.rank:
        return None
    axis = g.axis(x)
    count = g.number(1, x.shape[axis])
    shape = [count if a == axis % x.rank else d for a, d in enumerate(x.shape)]
    values, places = g.many("TopK", [x.name, g.ints(count)], [shape] * 2, axis=axis, largest=int(g.maybe()))
    return [replace(values, exact=True), replace(g.add("Cast", [places.name], shape, to=1), exact=True)]


@step()
def einsum(g: Graph, x: Tensor) -> Tensor | None:
    if g.opset < 12 or x.rank != 3 or x.size > LARGEST:
        return None
    b, m, k = x.shape
    n = g.number(1, 5)
    equation, other, shape = g.pick(
        ("bmk,kn->bmn", (k, n), (b, m, n)),
        ("bmk,bnk->bmn", (b, n, k), (b, m, n)),
        ("bmk,mk->bm", (m, k), (b, m)),
        ("bmk,kn->nbm", (k, n), (n, b, m)),
    )
    return g.add("Einsum", [x.name, g.weights(*other, fan_in=k)], shape, equation=equation)
