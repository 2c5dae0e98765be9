"""Random small nets compute the same before and after canonicalization, and settle in one run of it."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from nets import Net, apply

from bmcompiler.ir import Module, Value

UNARY = ("relu", "sigmoid", "hard_swish", "abs", "neg", "tanh")
ORDERS = list(itertools.permutations(range(4)))


def grow(n: Net, x: Value, values: list[Value], draw: Any) -> Value:
    """One random step from `x`; another value of the same shape may join in."""
    like_x = [v for v in values if v.shape == x.shape]
    channels = x.shape[1]
    step = draw(st.sampled_from(STEPS))
    if step == "unary":
        return getattr(n, draw(st.sampled_from(UNARY)))(x)
    if step == "permute":
        return n.permute(x, order=draw(st.sampled_from(ORDERS)))
    if step == "conv":
        pads = draw(st.sampled_from([(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 2, 0)]))
        fits = min(x.shape[2] + pads[0] + pads[1], x.shape[3] + pads[2] + pads[3]) >= 2
        bias = n.w(3) if draw(st.booleans()) else None
        return n.conv(x, n.w(3, channels, 2, 2), bias, pads=pads) if fits else n.conv(x, n.w(3, channels, 1, 1))
    if step == "affine":
        shape = draw(st.sampled_from([(1,), (channels, 1, 1), (1, channels, 1, 1), x.shape[3:], x.shape[2:]]))
        constant = n.w(*shape, low=0.5, high=2.0)
        operands = (x, constant) if draw(st.booleans()) else (constant, x)
        return getattr(n, draw(st.sampled_from(("add", "sub", "mul"))))(*operands)
    if step == "batch_norm":
        return n.batch_norm(x, n.w(channels), n.w(channels), n.w(channels), n.w(channels, low=0.5, high=2))
    if step == "clip":
        return n.clip(n.add(x, n.fill(3, 1)), min=0.0, max=6.0)
    if step == "join":
        other = draw(st.sampled_from(like_x))
        return getattr(n, draw(st.sampled_from(("add", "mul", "max"))))(x, other)
    if step == "concat":
        return n.concat(x, draw(st.sampled_from(like_x)), axis=draw(st.integers(0, 3)))
    if step == "reduce":
        axes = draw(st.sampled_from([(1,), (2, 3), (1, 2), (3,)]))
        return n.reduce(x, method=draw(st.sampled_from(("mean", "max"))), axes=axes)
    if step == "pad":
        return n.pad(x, pads=(0, 0, 0, 0, *draw(st.sampled_from([(1, 1, 1, 1), (0, 1, 0, 2)]))))
    if step == "pool":
        kernel = (min(2, x.shape[2]), min(2, x.shape[3]))
        return getattr(n, draw(st.sampled_from(("max_pool", "avg_pool"))))(x, kernel=kernel)
    if step == "slice":
        return n.slice(x, starts=(0,) * 4, ends=(*x.shape[:3], (x.shape[3] + 1) // 2), steps=(1, 1, 1, 1))
    if step == "softmax":
        return n.softmax(x, axis=draw(st.integers(0, 3)))
    return n.reshape(x, shape=(x.shape[0], x.shape[3], x.shape[1], x.shape[2]))


STEPS = (
    *("unary", "permute", "permute", "permute", "conv", "conv", "affine", "affine", "batch_norm", "clip", "join"),
    *("concat", "reduce", "pad", "pool", "slice", "softmax", "reshape"),
)


@st.composite
def nets(draw: Any) -> Module:
    n = Net(draw(st.integers(0, 1000)))
    values = [n.input(draw(st.integers(1, 2)), 3, 4, 5)]
    for _ in range(draw(st.integers(1, 10))):
        x = values[-1] if draw(st.integers(0, 3)) else draw(st.sampled_from(values))
        if x.type.size < 5000:
            values.append(grow(n, x, values, draw))
    flat = n.reshape(values[-1], shape=(values[-1].shape[0], values[-1].type.size // values[-1].shape[0]))
    product = n.add(n.matmul(flat, n.w(flat.shape[1], 2)), n.w(2))
    return n.done(product, *({values[len(values) // 2]: None} if len(values) > 2 else {}))


@settings(max_examples=100, deadline=None)
@given(nets())
def test_canonical_form_computes_the_same(module: Module) -> None:
    apply(module, "canonicalize")
