"""Cases of `cases.CASES` for formulas that exporters write out, and for scales on their way to a layer."""

from __future__ import annotations

import math

import numpy as np
from cases import case
from nets import Net

from bmcompiler.ir import Module, Value


# -- fuse-gates ------------------------------------------------------------------------------------------------------
def logistic(n: Net, x: Value, slope: float = -1.0) -> Value:
    """1 + exp(slope * x)."""
    return n.add(n.fill(1.0, 1), n.exp(n.neg(x) if slope == -1.0 else n.mul(x, n.fill(slope, 1))))


@case("fuse-gates")
def rules_1_and_2(n: Net) -> Module:
    x = n.input(1, 2, 4)
    power = n.pow(logistic(n, x), n.fill(-1.0, 1))
    return n.done(n.div(n.fill(1.0, 1), logistic(n, x)), power, n.log(n.add(n.exp(x), n.fill(1.0, 1))))


@case("fuse-gates")
def rule_3_swish(n: Net) -> Module:
    x = n.input(1, 2, 4)
    quick = n.mul(n.sigmoid(n.mul(x, n.fill(1.702, 1))), x)
    return n.done(n.mul(x, n.sigmoid(x)), quick, n.div(x, logistic(n, x)), n.div(x, logistic(n, x, -1.5)))


@case("fuse-gates")
def rule_3_other_gates_stay(n: Net) -> Module:
    x, y = n.input(1, 2, 4), n.input(1, 2, 4, name="b")
    gate = n.sigmoid(x)
    return n.done(n.mul(y, n.sigmoid(x)), n.mul(x, gate), gate, n.mul(x, n.sigmoid(n.add(x, n.fill(0.5, 1)))))


@case("fuse-gates")
def rule_7_log_sigmoid(n: Net) -> Module:
    x = n.input(1, 2, 4)
    seen = n.sigmoid(x)
    return n.done(n.log(n.sigmoid(x)), n.log(n.div(n.fill(1.0, 1), logistic(n, x))), n.log(seen), seen)


@case("fuse-gates")
def rule_4_mish(n: Net) -> Module:
    x = n.input(1, 2, 4)
    written_out = n.mul(n.tanh(n.log(n.add(n.exp(x), n.fill(1.0, 1)))), x)
    return n.done(n.mul(x, n.tanh(n.softplus(x))), written_out)


@case("fuse-gates")
def rule_5_gelu(n: Net) -> Module:
    x = n.input(1, 2, 4)

    def twice_p() -> Value:
        return n.add(n.erf(n.div(x, n.fill(math.sqrt(2), 1))), n.fill(1.0, 1))

    a = n.mul(n.mul(x, twice_p()), n.fill(0.5, 1))
    b = n.mul(n.mul(x, n.fill(0.5, 1)), twice_p())
    half = n.mul(n.fill(0.5, 1), n.add(n.fill(1.0, 1), n.erf(n.mul(x, n.fill(math.sqrt(0.5), 1)))))
    return n.done(a, b, n.mul(half, x))


@case("fuse-gates")
def rule_6_gelu_by_tanh(n: Net) -> Module:
    x = n.input(1, 2, 4)
    root = math.sqrt(2 / math.pi)
    cube = n.add(x, n.mul(n.pow(x, n.fill(3.0, 1)), n.fill(0.044715, 1)))
    a = n.mul(n.mul(x, n.fill(0.5, 1)), n.add(n.tanh(n.mul(cube, n.fill(root, 1))), n.fill(1.0, 1)))
    nested = n.add(n.mul(n.mul(n.fill(0.044715, 1), x), x), n.fill(1.0, 1))
    inner = n.mul(n.mul(n.fill(root, 1), x), nested)
    return n.done(a, n.mul(n.mul(n.add(n.fill(1.0, 1), n.tanh(inner)), x), n.fill(0.5, 1)))


# -- fuse-norms ------------------------------------------------------------------------------------------------------
def squared_mean(n: Net, x: Value, axes: tuple[int, ...], *, power: bool = True) -> Value:
    square = n.pow(x, n.fill(2.0, 1)) if power else n.mul(x, x)
    return n.add(n.reduce(square, method="mean", axes=axes), n.fill(1e-5, 1))


@case("fuse-norms")
def rule_1_layer_norm(n: Net) -> Module:
    def centred(x: Value, axes: tuple[int, ...]) -> Value:
        return n.sub(x, n.reduce(x, method="mean", axes=axes))

    x = n.input(2, 3, 8)
    a, other = centred(x, (2,)), centred(x, (2,))
    b, c = centred(x, (1, 2)), centred(x, (2,))
    reciprocal = n.div(n.fill(1.0, 1), n.pow(squared_mean(n, b, (1, 2)), n.fill(0.5, 1)))
    return n.done(
        n.div(a, n.sqrt(squared_mean(n, other, (2,)))),
        n.mul(b, reciprocal),
        n.mul(n.pow(squared_mean(n, c, (2,), power=False), n.fill(-0.5, 1)), c),
    )


@case("fuse-norms")
def rule_1_other_axes_stay(n: Net) -> Module:
    x = n.input(2, 3, 8)
    a = n.sub(x, n.reduce(x, method="mean", axes=(1,)))
    b = n.sub(x, n.reduce(x, method="mean", axes=(1, 2)))
    root = n.sqrt(squared_mean(n, b, (1, 2)))
    return n.done(n.div(a, n.sqrt(squared_mean(n, a, (1,)))), n.div(b, root), root)


@case("fuse-norms")
def rule_2_rms_norm(n: Net) -> Module:
    x = n.input(2, 3, 8)
    reciprocal = n.div(n.fill(1.0, 1), n.sqrt(squared_mean(n, x, (2,))))
    return n.done(n.mul(n.mul(x, reciprocal), n.w(8)), n.div(x, n.sqrt(squared_mean(n, x, (1, 2), power=False))))


@case("fuse-norms")
def rule_3_gamma_and_beta(n: Net) -> Module:
    x = n.input(2, 3, 8)
    return n.done(
        n.add(n.mul(n.layer_norm(x, axis=2), n.w(8)), n.w(1, 1, 8)),
        n.scale(n.layer_norm(x, n.w(3, 8), axis=1), n.w(3), n.w(3)),
        n.add(n.layer_norm(x, axis=1), n.w(1)),
        n.mul(n.rms_norm(x, n.w(8), axis=2), n.fill(2.0, 1)),
    )


@case("fuse-norms")
def rule_3_along_other_axes_stays(n: Net) -> Module:
    x = n.input(2, 3, 8)
    return n.done(n.mul(n.layer_norm(x, axis=2), n.w(3, 1)), n.add(n.rms_norm(x, axis=2), n.w(8)))


# -- move-scales -----------------------------------------------------------------------------------------------------
@case("move-scales")
def rules_1_and_2_pooling(n: Net) -> Module:
    a, b = (n.conv(n.input(1, 2, 6, 6, name=name), n.w(3, 2, 1, 1)) for name in "ab")
    mean = n.avg_pool(a, kernel=(3, 3), pads=(1, 1, 1, 1))
    return n.done(n.scale(mean, n.w(3), n.w(3)), n.scale(n.max_pool(b, kernel=(2, 2)), n.w(3, low=0.5), n.w(3)))


@case("move-scales")
def rules_1_and_2_exceptions_stay(n: Net) -> Module:
    a, b, c = (n.conv(n.input(1, 2, 6, 6, name=name), n.w(3, 2, 1, 1)) for name in "abc")
    padded = n.avg_pool(a, kernel=(3, 3), pads=(1, 1, 1, 1), count_include_pad=True)
    return n.done(
        n.scale(padded, n.w(3), n.w(3)),
        n.scale(n.max_pool(b, kernel=(2, 2)), n.constant(np.array([1.0, -1.0, 1.0]))),
        n.scale(n.relu(c), n.w(3)),
    )


@case("move-scales")
def rule_3_reshape(n: Net) -> Module:
    x = n.conv(n.input(1, 2, 6, 6), n.w(3, 2, 1, 1))
    return n.done(n.scale(n.reshape(x, shape=(1, 3, 36)), n.w(3), n.w(3)))


@case("move-scales")
def rule_4_reshape_of_a_product(n: Net) -> Module:
    x = n.matmul(n.input(6, 4), n.w(4, 5))
    return n.done(n.scale(n.reshape(x, shape=(2, 3, 5)), n.w(5), n.w(5), axis=2))


@case("move-scales")
def rule_5_concat(n: Net) -> Module:
    a, b = (n.conv(n.input(1, 2, 6, 6, name=name), n.w(3, 2, 1, 1)) for name in "ab")
    return n.done(n.scale(n.concat(a, b, axis=1), n.w(6), n.w(6)))


@case("canonicalize")
def transformer_block(n: Net) -> Module:
    """Layer norm, gelu and products as PyTorch exports them."""
    x = n.input(1, 4, 8)
    centred = n.sub(x, n.reduce(x, method="mean", axes=(2,)))
    norm = n.div(centred, n.sqrt(squared_mean(n, centred, (2,))))
    y = n.add(n.matmul(n.add(n.mul(norm, n.w(8)), n.w(8)), n.w(8, 16)), n.w(16))
    gate = n.add(n.erf(n.div(y, n.fill(math.sqrt(2), 1))), n.fill(1.0, 1))
    z = n.matmul(n.mul(n.mul(y, gate), n.fill(0.5, 1)), n.w(16, 8))
    return n.done(n.add(n.add(z, n.w(8)), x))


# -- fuse-activation -------------------------------------------------------------------------------------------------
@case("fuse-activation")
def rule_1_relu(n: Net) -> Module:
    x = n.input(1, 2, 4, 4)
    x = n.relu(n.conv(x, n.w(2, 2, 3, 3), n.w(2), pads=(1, 1, 1, 1)))
    x = n.relu(n.add(n.relu(n.deconv(x, n.w(2, 2, 1, 1))), x))
    return n.done(n.relu(n.matmul(x, n.w(4, 3))))


@case("fuse-activation")
def rule_1_integers(n: Net) -> Module:
    x = n.input(1, 2, 4, 4, dtype="i8")
    kernel = n.constant(n.random.integers(-128, 128, (3, 2, 1, 1)), "int8")
    y = n.conv(x, kernel, rshift=7)
    return n.done(n.relu(y), n.relu(n.add(x, x)))


@case("fuse-activation")
def rule_2_relu6(n: Net) -> Module:
    x = n.input(1, 2, 4, 4)
    x = n.clip(n.conv(x, n.fill(4.0, 2, 2, 1, 1)), min=0.0, max=6.0)
    return n.done(n.clip(n.add(x, n.fill(-3.0, 1)), min=0.0, max=6.0))


@case("fuse-activation")
def rule_2_other_limits_stay(n: Net) -> Module:
    x = n.conv(n.input(1, 2, 4, 4), n.w(2, 2, 1, 1))
    y = n.add(x, n.w(1))
    return n.done(n.clip(x, min=-1.0, max=6.0), n.clip(y, max=6.0))


@case("fuse-activation")
def rule_1_read_twice_stays(n: Net) -> Module:
    a = n.conv(n.input(1, 2, 4, 4), n.w(2, 2, 1, 1))
    b = n.add(n.relu(a), a)
    return n.done(n.relu(b), b)


@case("fuse-activation")
def rule_3_second_activation_stays(n: Net) -> Module:
    x = n.input(1, 2, 4, 4)
    return n.done(n.relu(n.conv(x, n.w(2, 2, 1, 1), activation="relu6")), n.relu(n.sub(x, n.w(1))))


# -- fuse-thresholds -------------------------------------------------------------------------------------------------
@case("fuse-thresholds")
def rule_1_comparison_as_number(n: Net) -> Module:
    x = n.input(1, 3, 4)
    a = n.cast(n.compare(x, n.fill(0.5, 1), method="greater"), dtype="f32")
    b = n.cast(n.compare(n.fill(0.25, 1, 1, 1), x, method="less"), dtype="f32")
    return n.done(a, b)


@case("fuse-thresholds")
def rule_1_other_numbers_and_types_stay(n: Net) -> Module:
    x = n.input(1, 3, 4)
    below = n.cast(n.compare(x, n.fill(0.5, 1), method="less"), dtype="f32")
    rows = n.cast(n.compare(x, n.w(1, 3, 1), method="greater"), dtype="f32")
    read_twice = n.compare(x, n.fill(0.5, 1), method="greater")
    as_bytes = n.cast(n.compare(x, n.fill(0.5, 1), method="greater"), dtype="i8")
    return n.done(below, rows, n.cast(read_twice, dtype="f32"), read_twice, as_bytes)


@case("fuse-thresholds")
def rule_2_equality_included(n: Net) -> Module:
    x = n.input(1, 3, 4)
    a = n.cast(n.compare(x, n.fill(0.5, 1), method="greater_equal"), dtype="f32")
    return n.done(a, n.cast(n.compare(n.fill(-2.0, 1), x, method="less_equal"), dtype="f32"))


@case("fuse-thresholds")
def rule_2_next_to_zero_stays(n: Net) -> Module:
    x = n.input(1, 3, 4)
    return n.done(n.cast(n.compare(x, n.fill(0.0, 1), method="greater_equal"), dtype="f32"))


@case("fuse-thresholds")
def rule_3_choice_of_one_and_zero(n: Net) -> Module:
    x = n.input(1, 3, 4)
    above = n.compare(x, n.fill(0.5, 1), method="greater")
    return n.done(n.where(above, n.fill(1.0, 1), n.fill(0.0, 1)))
