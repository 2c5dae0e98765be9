"""One net per rule of a pass: (pass, rule) -> function that builds it. The texts before and after are golden files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from nets import Net

from bmcompiler.ir import Module, Quant, TensorType, Value

CASES: dict[tuple[str, str], Callable[[Net], Module]] = {}
NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


def case(pass_name: str) -> Callable[[Callable[[Net], Module]], Callable[[Net], Module]]:
    def register(build: Callable[[Net], Module]) -> Callable[[Net], Module]:
        CASES[pass_name, build.__name__.replace("_", "-")] = build
        return build

    return register


# -- fold-constants, dead-code, common-subexpressions ----------------------------------------------------------------
@case("fold-constants")
def weights_only(n: Net) -> Module:
    kernel = n.mul(n.permute(n.w(2, 3, 1, 1), order=(1, 0, 2, 3)), n.fill(2.0, 1))
    return n.done(n.conv(n.input(1, 2, 4, 4), kernel))


@case("fold-constants")
def several_results(n: Net) -> Module:
    a, b = n.split(n.w(1, 6), axis=1, sizes=(2, 4))
    return n.done(n.add(n.input(1, 4), b), n.relu(a))


@case("dead-code")
def unread(n: Net) -> Module:
    x = n.input(1, 2)
    n.relu(n.add(x, n.w(1, 2)))
    return n.done(n.abs(x))


@case("common-subexpressions")
def equal_branches(n: Net) -> Module:
    x = n.input(1, 2, 4, 4)
    kernel = np.ones((2, 2, 1, 1), np.float32)
    a = n.relu(n.conv(x, n.constant(kernel)))
    b = n.relu(n.conv(x, n.constant(kernel.copy())))
    return n.done(n.concat(a, b, axis=1))


@case("common-subexpressions")
def different_attributes_stay(n: Net) -> Module:
    x = n.input(1, 2)
    return n.done(n.leaky_relu(x, slope=0.1), n.leaky_relu(x, slope=0.2))


# -- remove-identity -----------------------------------------------------------------------------------------------
@case("remove-identity")
def rule_1_same_type(n: Net) -> Module:
    x = n.relu(n.input(1, 2, 4, 4))
    x = n.reshape(n.cast(x, dtype="f32"), shape=(1, 2, 4, 4))
    x = n.slice(x, starts=(0, 0, 0, 0), ends=(1, 2, 4, 4), steps=(1, 1, 1, 1))
    x = n.tile(n.upsample(n.pad(x, pads=(0,) * 8), scale=(1, 1)), reps=(1, 1, 1, 1))
    return n.done(n.split(n.concat(x, axis=1), axis=1, sizes=(2,)))


@case("remove-identity")
def rule_1_reversing_slice_stays(n: Net) -> Module:
    return n.done(n.slice(n.input(1, 4), starts=(0, 3), ends=(1, -1), steps=(1, -1)))


@case("remove-identity")
def rule_2_permute(n: Net) -> Module:
    return n.done(n.permute(n.relu(n.input(1, 2, 3)), order=(0, 1, 2)))


@case("remove-identity")
def rule_3_pools(n: Net) -> Module:
    return n.done(n.max_pool(n.avg_pool(n.relu(n.input(1, 2, 4, 4)), kernel=(1, 1)), kernel=(1, 1)))


@case("remove-identity")
def rule_3_strided_pool_stays(n: Net) -> Module:
    return n.done(n.max_pool(n.input(1, 2, 4, 4), kernel=(1, 1), strides=(2, 2)))


@case("remove-identity")
def rule_4_neutral(n: Net) -> Module:
    x = n.relu(n.input(1, 2, 4))
    x = n.mul(n.fill(1, 1), n.add(n.fill(0, 4), x))
    return n.done(n.pow(n.div(n.sub(x, n.fill(0, 1)), n.fill(1, 2, 1)), n.fill(1, 1)))


@case("remove-identity")
def rule_4_broadcasting_stays(n: Net) -> Module:
    x = n.input(1, 4)
    return n.done(n.add(x, n.fill(0, 3, 4)), n.sub(n.fill(0, 1), x))


@case("remove-identity")
def rule_5_scale(n: Net) -> Module:
    x = n.relu(n.input(1, 2, 4))
    return n.done(n.scale(n.scale(x, n.fill(1, 2)), n.fill(1, 2), n.fill(0, 2)))


@case("remove-identity")
def rule_6_repeated(n: Net) -> Module:
    x = n.input(1, 4)
    return n.done(n.relu(n.relu(x)), n.relu(n.sigmoid(x)), n.floor(n.floor(x)))


@case("remove-identity")
def rule_6_nothing_in_pieces(n: Net) -> Module:
    x = n.relu(n.input(1, 4))
    whole, nothing = n.split(x, axis=1, sizes=(4, 0))
    first, none, second = n.split(x, axis=1, sizes=(1, 0, 3))
    return n.done(n.concat(nothing, whole, axis=1), n.concat(second, none, first, axis=1))


@case("remove-identity")
def rule_7_no_limits(n: Net) -> Module:
    x = n.clip(n.relu(n.input(1, 4)))
    return n.done(n.prelu(n.leaky_relu(x, slope=1.0), n.fill(1, 4)))


@case("remove-identity")
def rule_8_reduce(n: Net) -> Module:
    x = n.relu(n.input(2, 1, 4))
    return n.done(n.reduce(x, method="sum", axes=(1,)), n.reduce(x, method="max", axes=(1,), keepdims=False))


# -- merge-reshapes ------------------------------------------------------------------------------------------------
@case("merge-reshapes")
def rule_1_reshape_of_reshape(n: Net) -> Module:
    return n.done(n.reshape(n.reshape(n.input(1, 2, 6), shape=(1, 12)), shape=(1, 3, 4)))


@case("merge-reshapes")
def rule_2_permute_of_ones(n: Net) -> Module:
    return n.done(n.permute(n.input(1, 5, 1, 1), order=NHWC), n.permute(n.input(1, 5, 2, 1, name="b"), order=NHWC))


@case("merge-reshapes")
def rule_3_work_before_reshape(n: Net) -> Module:
    return n.done(n.relu(n.reshape(n.abs(n.input(1, 2, 3)), shape=(1, 6))))


# -- move-permutes -------------------------------------------------------------------------------------------------
@case("move-permutes")
def rule_1_permute_of_permute(n: Net) -> Module:
    return n.done(n.permute(n.permute(n.input(1, 2, 3, 4), order=NHWC), order=(0, 2, 1, 3)))


@case("move-permutes")
def rule_1_inverse_pair(n: Net) -> Module:
    x = n.conv(n.input(1, 2, 4, 4), n.w(3, 2, 1, 1))
    x = n.add(n.permute(x, order=NHWC), n.w(3))
    return n.done(n.conv(n.permute(n.relu(x), order=NCHW), n.w(2, 3, 1, 1)))


@case("move-permutes")
def rule_2_axes(n: Net) -> Module:
    x = n.permute(n.conv(n.input(2, 3, 4, 5), n.w(3, 3, 1, 1)), order=NHWC)
    x = n.softmax(n.prelu(n.scale(x, n.w(3), axis=3), n.w(3), axis=3), axis=-1)
    x = n.pad(n.slice(x, starts=(0, 1, 0, 0), ends=(2, 4, 5, 3), steps=(1, 1, 2, 1)), pads=(0, 0, 1, 0, 0, 2, 0, 0))
    return n.done(n.tile(x, reps=(1, 2, 1, 1)))


@case("move-permutes")
def rule_2_several_operands(n: Net) -> Module:
    x = n.input(2, 3, 4, 5)
    a = n.permute(n.conv(x, n.w(3, 3, 1, 1)), order=NHWC)
    b = n.permute(n.conv(x, n.w(3, 3, 1, 1)), order=NHWC)
    y = n.concat(n.mul(a, b), n.sub(n.w(4, 1, 3), n.max(a, n.fill(0.5, 1))), axis=3)
    return n.done(*(n.permute(piece, order=NCHW) for piece in n.split(y, axis=3, sizes=(2, 4))))


@case("move-permutes")
def rule_2_pieces_stay(n: Net) -> Module:
    x = n.permute(n.conv(n.input(2, 3, 4, 5), n.w(3, 3, 1, 1)), order=NHWC)
    return n.done(*n.split(x, axis=3, sizes=(2, 1)))


@case("move-permutes")
def rule_2_removed_axes(n: Net) -> Module:
    x = n.permute(n.conv(n.input(2, 3, 4, 5), n.w(3, 3, 1, 1)), order=NHWC)
    mean = n.reduce(x, method="mean", axes=(1, 2), keepdims=False)
    rows = n.reduce(x, method="max", axes=(1,), keepdims=False)
    return n.done(mean, rows, n.arg(x, method="max", axis=3, keepdims=False), n.reduce(x, method="sum", axes=(3,)))


@case("move-permutes")
def rule_2_other_reader_stays(n: Net) -> Module:
    x = n.permute(n.conv(n.input(1, 3, 4, 5), n.w(3, 3, 1, 1)), order=NHWC)
    return n.done(n.relu(x), n.reshape(x, shape=(20, 3)))


@case("move-permutes")
def rule_2_more_axes_stay(n: Net) -> Module:
    x = n.permute(n.conv(n.input(1, 3, 4, 5), n.w(3, 3, 1, 1)), order=NHWC)
    return n.done(n.add(x, n.w(2, 1, 1, 1, 1)))


@case("move-permutes")
def rule_3_towards_the_input(n: Net) -> Module:
    x = n.mul(n.sub(n.input(1, 4, 4, 3), n.w(3)), n.fill(0.5, 1))
    return n.done(n.conv(n.permute(x, order=NCHW), n.w(2, 3, 1, 1)))


@case("move-permutes")
def rule_3_meets_the_first_permute(n: Net) -> Module:
    x = n.add(n.permute(n.input(1, 3, 4, 4), order=NHWC), n.w(3))
    return n.done(n.conv(n.permute(x, order=NCHW), n.w(2, 3, 1, 1)))


@case("move-permutes")
def rule_4_rows_of_the_weight(n: Net) -> Module:
    x = n.permute(n.conv(n.input(2, 3, 4, 5), n.w(3, 3, 1, 1)), order=NHWC)
    flat = n.reshape(x, shape=(2, 60))
    return n.done(n.matmul(flat, n.w(60, 4), n.w(4)), n.matmul(flat, n.w(2, 60), transpose_right=True))


@case("move-permutes")
def integers(n: Net) -> Module:
    x = n.permute(n.max_pool(n.input(1, 3, 4, 4, dtype="i8"), kernel=(1, 1)), order=NHWC)
    x = n.muls_shift(n.relu(x), multiplier=3, rshift=1, out=TensorType((1, 4, 4, 3), "i8", Quant(0.5)))
    return n.done(n.permute(x, order=NCHW))


# -- fuse-patterns -------------------------------------------------------------------------------------------------
@case("fuse-patterns")
def rule_1_limits(n: Net) -> Module:
    x = n.input(1, 4)
    return n.done(n.max(n.fill(-1, 1), x), n.min(x, n.fill(2, 4)), n.max(n.abs(x), n.fill(0, 1)))


@case("fuse-patterns")
def rule_2_clips(n: Net) -> Module:
    x = n.input(1, 4)
    merged = n.clip(n.clip(x, min=-1.0, max=5.0), min=0.0, max=3.0)
    return n.done(merged, n.clip(n.relu(x), max=6.0), n.relu(n.clip(x, min=-2.0, max=-1.0)))


@case("fuse-patterns")
def rule_2_read_twice_stays(n: Net) -> Module:
    a = n.clip(n.input(1, 4), min=-1.0, max=5.0)
    return n.done(n.clip(a, min=0.0, max=3.0), a)


@case("fuse-patterns")
def rule_3_hard_sigmoids(n: Net) -> Module:
    x = n.input(1, 4, 2, 2)
    paddle = n.div(n.clip(n.add(x, n.fill(3, 1)), min=0.0, max=6.0), n.fill(6, 1))
    keras = n.clip(n.add(n.mul(n.fill(0.2, 1), x), n.fill(0.5, 1)), min=0.0, max=1.0)
    scaled = n.scale(n.clip(n.scale(x, n.fill(1, 4), n.fill(3, 4)), min=0.0, max=6.0), n.fill(1 / 6, 4))
    return n.done(paddle, keras, scaled)


@case("fuse-patterns")
def rule_3_other_ranges_stay(n: Net) -> Module:
    x = n.input(1, 4)
    other_top = n.div(n.clip(n.add(x, n.fill(3, 1)), min=0.0, max=5.0), n.fill(6, 1))
    growing = n.clip(n.add(n.input(1, 1, name="one"), n.fill(0.5, 1, 4)), min=0.0, max=1.0)
    return n.done(other_top, n.div(n.clip(x, min=0.0, max=6.0), n.fill(6, 1)), growing)


@case("fuse-patterns")
def rule_4_hard_swishes(n: Net) -> Module:
    x = n.input(1, 4, 2, 2)
    three, six = n.fill(3, 1), n.fill(6, 1)
    last = n.div(n.mul(x, n.clip(n.add(x, three), min=0.0, max=6.0)), six)
    first = n.mul(n.clip(n.add(three, x), min=0.0, max=6.0), n.mul(x, n.fill(1 / 6, 1)))
    inner = n.mul(x, n.div(n.clip(n.add(x, three), min=0.0, max=6.0), six))
    known = n.mul(n.hard_sigmoid(x, alpha=1 / 6), x)
    return n.done(last, first, inner, known)


@case("fuse-patterns")
def rule_4_other_source_stays(n: Net) -> Module:
    x, y = n.input(1, 4), n.input(1, 4, name="y")
    return n.done(n.mul(y, n.hard_sigmoid(x, alpha=1 / 6)), n.mul(x, n.hard_sigmoid(x)))


@case("fuse-patterns")
def rule_5_leaky(n: Net) -> Module:
    x = n.input(1, 4, 2, 2)
    plain = n.max(x, n.mul(x, n.fill(0.1, 1)))
    keras = n.sub(n.relu(x), n.mul(n.fill(0.3, 1), n.relu(n.neg(x))))
    channels = n.add(n.relu(x), n.mul(n.mul(n.w(4, 1, 1), n.sub(x, n.abs(x))), n.fill(0.5, 1)))
    limited = n.add(n.mul(n.w(1, 4, 1, 1), n.min(x, n.fill(0, 1))), n.relu(x))
    return n.done(plain, keras, channels, limited)


@case("fuse-patterns")
def rule_5_slopes_per_element_stay(n: Net) -> Module:
    x = n.input(1, 4, 2, 2)
    return n.done(n.add(n.relu(x), n.mul(n.w(4, 2, 2), n.clip(x, max=0.0))), n.max(x, n.mul(x, n.fill(2, 1))))


@case("fuse-patterns")
def rule_6_softmax(n: Net) -> Module:
    x = n.input(1, 4, 2)
    exp = n.exp(n.sub(x, n.reduce(x, method="max", axes=(1,))))
    bare = n.exp(x)
    return n.done(
        n.div(exp, n.reduce(exp, method="sum", axes=(1,))), n.div(bare, n.reduce(bare, method="sum", axes=(2,)))
    )


@case("fuse-patterns")
def rule_7_log_sum_exp(n: Net) -> Module:
    x = n.input(2, 3, 4)
    powers = n.exp(x)
    read_twice = n.exp(n.input(2, 3, 4, name="b"))
    return n.done(
        n.log(n.reduce(powers, method="sum", axes=(1,))),
        n.log(n.reduce(read_twice, method="sum", axes=(0, 2), keepdims=False)),
        read_twice,
        n.log(n.reduce(n.exp(n.input(2, 3, 4, name="c")), method="sum", axes=(0, 2), keepdims=False)),
    )


@case("fuse-patterns")
def rule_8_elu(n: Net) -> Module:
    x, y, z = (n.input(2, 3, 4, name=name) for name in ("data", "b", "c"))
    bent = n.mul(n.sub(n.exp(x), n.fill(1.0, 1)), n.fill(2.0, 1))
    plain = n.where(n.compare(x, n.fill(0.0, 1), method="less"), bent, x)
    curve = n.sub(n.mul(n.exp(y), n.fill(1.5, 1)), n.fill(1.5, 1))
    selu = n.where(n.compare(y, n.fill(0.0, 1), method="greater"), n.mul(y, n.fill(1.25, 1)), curve)
    other = n.where(n.compare(z, n.fill(1.0, 1), method="less"), n.sub(n.exp(z), n.fill(1.0, 1)), z)
    return n.done(plain, selu, other)


# -- reduce-to-pool, simplify-matmul ---------------------------------------------------------------------------------
@case("reduce-to-pool")
def rule_1_mean(n: Net) -> Module:
    x = n.input(1, 4, 2, 3)
    return n.done(n.reduce(x, method="mean", axes=(2, 3)), n.reduce(x, method="mean", axes=(3, 2), keepdims=False))


@case("reduce-to-pool")
def rule_2_max(n: Net) -> Module:
    x = n.input(1, 4, 2, 3, dtype="i8")
    return n.done(n.reduce(x, method="max", axes=(2, 3)), n.reduce(x, method="sum", axes=(2, 3)))


@case("simplify-matmul")
def rule_1_bias(n: Net) -> Module:
    x = n.input(2, 4)
    y = n.add(n.w(1, 3), n.add(n.matmul(x, n.w(4, 3)), n.w(3)))
    return n.done(n.add(y, n.fill(0.5, 1)), n.add(n.matmul(x, n.w(4, 2)), n.w(2, 1)))


@case("simplify-matmul")
def rule_2_convolution(n: Net) -> Module:
    x = n.permute(n.input(2, 4, 3, 5), order=NHWC)
    return n.done(n.matmul(x, n.w(4, 3), n.w(3)), n.matmul(x, n.w(2, 4), transpose_right=True))


@case("simplify-matmul")
def rule_3_and_4_two_axes(n: Net) -> Module:
    x = n.input(2, 3, 4)
    return n.done(n.matmul(x, n.w(1, 4, 5)), n.matmul(x, n.w(5, 4), n.w(5), transpose_right=True))


@case("simplify-matmul")
def rule_5_transposed_left(n: Net) -> Module:
    x = n.input(4, 3)
    return n.done(n.matmul(n.permute(x, order=(1, 0)), n.w(4, 2)), n.matmul(x, n.w(2, 3, 4)))


# -- fold-batch-norm -------------------------------------------------------------------------------------------------
def normalised(n: Net, x: object, channels: int) -> object:
    parameters = [n.w(channels), n.w(channels), n.w(channels), n.w(channels, low=0.5, high=2.0)]
    return n.batch_norm(x, *parameters, epsilon=1e-3)


@case("fold-batch-norm")
def rule_1_and_4_conv(n: Net) -> Module:
    x = n.conv(n.input(1, 4, 5, 5), n.w(6, 2, 3, 3), n.w(6), pads=(1, 1, 1, 1), group=2)
    return n.done(n.relu(normalised(n, x, 6)))


@case("fold-batch-norm")
def rule_1_alone(n: Net) -> Module:
    return n.done(normalised(n, n.relu(n.input(1, 4, 2, 2)), 4))


@case("fold-batch-norm")
def rule_2_arithmetic(n: Net) -> Module:
    x = n.relu(n.input(2, 3, 4, 4))
    return n.done(
        n.add(x, n.w(3, 1, 1)), n.sub(n.w(1, 3, 1, 1), x), n.mul(x, n.fill(0.5, 1)), n.div(x, n.w(4, low=1, high=2))
    )


@case("fold-batch-norm")
def rule_2_other_shapes_stay(n: Net) -> Module:
    x = n.input(2, 3, 4, 4)
    grown = n.add(n.input(1, 1, 4, 4, name="y"), n.w(3, 1, 1))
    return n.done(n.add(x, n.w(3, 4, 1)), n.add(x, n.w(2, 1, 1, 1)), n.div(n.w(1), x), grown)


@case("fold-batch-norm")
def rule_3_scales(n: Net) -> Module:
    x = n.relu(n.input(2, 3, 4, 4))
    x = n.scale(n.scale(x, n.w(3), n.w(3)), n.w(3), n.w(3))
    return n.done(n.scale(n.scale(x, n.fill(2, 4), n.fill(1, 4), axis=3), n.w(3)))


@case("fold-batch-norm")
def rule_4_deconv_and_matmul(n: Net) -> Module:
    up = n.deconv(n.input(1, 4, 3, 3), n.w(4, 3, 2, 2), strides=(2, 2), group=2)
    flat = n.matmul(n.input(2, 5, name="b"), n.w(4, 5), n.w(4), transpose_right=True)
    rows = n.matmul(n.input(2, 5, name="c"), n.w(5, 4))
    return n.done(n.scale(up, n.w(6), n.w(6)), n.scale(flat, n.w(4), n.w(4)), n.mul(rows, n.w(4)))


@case("fold-batch-norm")
def rule_4_bias_alone_keeps_the_weight(n: Net) -> Module:
    return n.done(n.add(n.conv(n.input(1, 2, 4, 4), n.w(3, 2, 1, 1)), n.w(1, 3, 1, 1)))


@case("fold-batch-norm")
def rule_4_read_twice_stays(n: Net) -> Module:
    x = n.conv(n.input(1, 2, 4, 4), n.w(3, 2, 1, 1))
    return n.done(n.scale(x, n.w(3)), x)


@case("fold-batch-norm")
def rule_5_before(n: Net) -> Module:
    a = n.scale(n.relu(n.input(1, 4, 4, 4)), n.w(4), n.w(4))
    b = n.scale(n.relu(n.input(1, 4, 4, 4, name="b")), n.w(4))
    c = n.scale(n.relu(n.input(1, 4, name="c")), n.w(4), n.w(4))
    d = n.scale(n.relu(n.input(1, 4, 2, 2, name="d")), n.w(4))
    return n.done(
        n.conv(a, n.w(6, 2, 3, 3), n.w(6), group=2),
        n.conv(b, n.w(2, 4, 3, 3), pads=(1, 1, 1, 1)),
        n.matmul(c, n.w(4, 3)),
        n.deconv(d, n.w(4, 1, 2, 2), group=2),
    )


@case("fold-batch-norm")
def rule_5_shift_into_padding_stays(n: Net) -> Module:
    a = n.scale(n.relu(n.input(1, 4, 4, 4)), n.w(4), n.w(4))
    return n.done(n.conv(a, n.w(6, 4, 3, 3), pads=(0, 0, 1, 0)))


# -- fold-phases -----------------------------------------------------------------------------------------------------
def phase(n: Net, x: Value, row: int, column: int, step: int = 2) -> Value:
    """Every `step`-th row and column."""
    _, _, h, w = x.shape
    return n.slice(x, starts=(0, 0, row, column), ends=(*x.shape[:2], h, w), steps=(1, 1, step, step))


@case("fold-phases")
def rule_1_focus(n: Net) -> Module:
    x = n.input(1, 1, 8, 8)
    above = n.slice(x, starts=(0, 0, 0, 0), ends=(1, 1, 8, 8), steps=(1, 1, 2, 1))
    right = n.slice(above, starts=(0, 0, 0, 1), ends=(1, 1, 4, 8), steps=(1, 1, 1, 2))
    joined = n.concat(phase(n, x, 0, 0), phase(n, x, 1, 0), right, phase(n, x, 1, 1), axis=1)
    return n.done(n.conv(joined, n.w(2, 4, 3, 3), n.w(2), pads=(1, 1, 1, 1)))


@case("fold-phases")
def rule_1_parts_of_other_pixels_stay(n: Net) -> Module:
    x, y = n.input(1, 1, 8, 8), n.input(1, 1, 8, 8, name="b")
    places = ((0, 0), (0, 1), (1, 0), (1, 1))
    two = n.concat(*(phase(n, y if place == (1, 1) else x, *place) for place in places), axis=1)
    twice = n.concat(*(phase(n, x, row, 0) for row, _ in places), axis=1)
    kernel = n.w(2, 4, 3, 3)
    return n.done(n.conv(two, kernel), n.conv(twice, kernel))


# -- merge-tables ----------------------------------------------------------------------------------------------------
def looked_up(n: Net, name: str) -> Value:
    return n.lut(n.input(1, 2, 3, dtype="i8", name=name), n.constant(np.arange(256) - 128, "int8"))


@case("merge-tables")
def rule_1_functions_of_bytes(n: Net) -> Module:
    scaled = n.muls_shift(n.relu(looked_up(n, "a")), multiplier=77, rshift=6)
    return n.done(scaled, n.lut(looked_up(n, "b"), n.constant(np.arange(256)[::-1], "uint8")))


@case("merge-tables")
def rule_1_floats(n: Net) -> Module:
    table = n.constant(np.arange(256), "uint8")
    table.type = TensorType((256,), "u8", Quant(0.25, 3))
    found = n.lut(n.input(1, 2, 3, dtype="i8"), table)
    found.type = TensorType(found.shape, "u8", Quant(0.25, 3))
    return n.done(n.dequantize(found))


def real_bytes(n: Net, name: str, scale: float) -> Value:
    x = n.input(2, 3, 4, dtype="u8", name=name)
    x.type = TensorType(x.shape, "u8", Quant(scale, 100))
    return n.dequantize(x)


@case("merge-tables")
def rule_2_softmax(n: Net) -> Module:
    return n.done(n.softmax(real_bytes(n, "a", 0.25), axis=-1))


@case("merge-tables")
def rule_2_others_stay(n: Net) -> Module:
    across, steep = n.softmax(real_bytes(n, "a", 0.25), axis=1), n.softmax(real_bytes(n, "b", 1.0), axis=2)
    twice = real_bytes(n, "c", 0.25)
    return n.done(across, steep, n.softmax(twice, axis=2), twice)


@case("merge-tables")
def rule_1_other_readers_stay(n: Net) -> Module:
    twice = looked_up(n, "a")
    return n.done(n.relu(twice), n.muls_shift(twice, multiplier=3, rshift=1), looked_up(n, "b"))


# -- sigmoid-pairs ---------------------------------------------------------------------------------------------------
@case("sigmoid-pairs")
def rule_1_layers(n: Net) -> Module:
    x = n.input(1, 3, 4, 4)
    maps = n.softmax(n.conv(x, n.w(2, 3, 1, 1), n.w(2)), axis=1)
    row = n.reshape(n.conv(x, n.w(2, 3, 4, 4)), shape=(1, 1, 2))
    vectors = n.input(5, 3, name="v")
    products = n.matmul(vectors, n.w(3, 2), n.w(2)), n.matmul(vectors, n.w(2, 3), transpose_right=True)
    return n.done(maps, n.softmax(row, axis=-1), *(n.softmax(each, axis=1) for each in products))


@case("sigmoid-pairs")
def rule_1_others_stay(n: Net) -> Module:
    x = n.input(1, 3, 2, 2)
    three, read_twice = n.conv(x, n.w(3, 3, 1, 1)), n.conv(x, n.w(2, 3, 1, 1))
    limited, mixed = n.conv(x, n.w(2, 3, 1, 1), activation="relu"), n.conv(x, n.w(2, 3, 1, 1))
    turned = n.reshape(mixed, shape=(1, 4, 2))
    softmaxes = [n.softmax(each, axis=axis) for each, axis in ((three, 1), (read_twice, 1), (limited, 1), (turned, 2))]
    return n.done(*softmaxes, read_twice, n.softmax(n.conv(x, n.w(2, 3, 1, 1)), axis=2))


# -- fold-pad --------------------------------------------------------------------------------------------------------
BORDER = (0, 0, 0, 0, 1, 0, 2, 1)


@case("fold-pad")
def rule_1_conv(n: Net) -> Module:
    x = n.pad(n.input(1, 2, 5, 5), pads=BORDER)
    deeper = n.pad(n.input(1, 1, 5, 5, name="b"), pads=(0, 0, 1, 0, 1, 1, 1, 1))
    return n.done(n.conv(x, n.w(3, 2, 3, 3), pads=(1, 1, 0, 0), strides=(2, 2)), n.conv(deeper, n.w(3, 2, 3, 3)))


@case("fold-pad")
def rule_2_max_pool(n: Net) -> Module:
    lowest = n.pad(n.input(1, 2, 5, 5), pads=(0, 0, 0, 0, 1, 0, 0, 1), value=-np.inf)
    zero = n.pad(n.max_pool(n.relu(n.input(1, 2, 5, 5, name="b")), kernel=(1, 1)), pads=(0, 0, 0, 0, 1, 1, 1, 1))
    integers = n.pad(n.input(1, 2, 5, 5, dtype="i8", name="c"), pads=(0, 0, 0, 0, 1, 1, 1, 1), value=-128.0)
    kernel = {"kernel": (3, 3), "strides": (2, 2)}
    return n.done(n.max_pool(lowest, **kernel), n.max_pool(zero, **kernel), n.max_pool(integers, **kernel))


@case("fold-pad")
def rule_2_zero_may_win_stays(n: Net) -> Module:
    x = n.pad(n.input(1, 2, 5, 5), pads=(0, 0, 0, 0, 1, 1, 1, 1))
    wide = n.pad(n.relu(n.input(1, 2, 5, 5, name="b")), pads=(0, 0, 0, 0, 3, 3, 3, 3))
    return n.done(n.max_pool(x, kernel=(3, 3)), n.max_pool(wide, kernel=(2, 2)))


@case("fold-pad")
def rule_3_avg_pool(n: Net) -> Module:
    x = n.pad(n.input(1, 2, 5, 5), pads=(0, 0, 0, 0, 1, 0, 1, 1))
    counted = n.avg_pool(x, kernel=(3, 3), pads=(0, 1, 0, 0), count_include_pad=True)
    return n.done(
        n.avg_pool(x, kernel=(2, 2), strides=(2, 2)), counted, n.avg_pool(x, kernel=(3, 3), pads=(1, 1, 1, 1))
    )


@case("fold-pad")
def rule_4_pad_of_pad(n: Net) -> Module:
    x = n.pad(n.pad(n.input(1, 2), pads=(0, 0, 1, 0), value=2.0), pads=(0, 1, 0, 1), value=2.0)
    return n.done(x, n.pad(n.pad(n.input(1, 2, name="b"), pads=(0, 0, 1, 0)), pads=(0, 1, 0, 1), value=2.0))


@case("fold-pad")
def rule_5_constants_around(n: Net) -> Module:
    zeros = n.concat(n.fill(0, 1, 1, 2, 2), n.input(1, 3, 2, 2), n.fill(0, 1, 2, 2, 2), axis=1)
    ones = n.concat(n.input(1, 2, name="b"), n.fill(1, 1, 3), axis=1)
    return n.done(zeros, ones)


@case("fold-pad")
def rule_5_two_numbers_or_inputs_stay(n: Net) -> Module:
    x = n.input(1, 2)
    two = n.concat(n.fill(0, 1, 1), x, n.fill(1, 1, 1), axis=1)
    return n.done(two, n.concat(x, n.fill(0, 1, 1), n.input(1, 2, name="b"), axis=1))


# -- canonicalize ----------------------------------------------------------------------------------------------------
@case("canonicalize")
def nhwc_classifier(n: Net) -> Module:
    """What TensorFlow exporters write: NHWC input, permutes around each convolution, decomposed activations."""
    x = n.permute(n.sub(n.input(1, 8, 8, 3), n.fill(0.5, 1)), order=NCHW)
    x = n.permute(n.conv(n.pad(x, pads=(0, 0, 0, 0, 0, 1, 0, 1)), n.w(4, 3, 3, 3), strides=(2, 2)), order=NHWC)
    x = n.add(n.mul(x, n.w(4)), n.w(4))
    x = n.div(n.mul(x, n.clip(n.add(x, n.fill(3, 1)), min=0.0, max=6.0)), n.fill(6, 1))
    x = n.permute(n.conv(n.permute(x, order=NCHW), n.w(4, 1, 3, 3), group=4, pads=(1, 1, 1, 1)), order=NHWC)
    x = n.prelu(n.add(x, n.w(4)), n.w(4), axis=3)
    x = n.reshape(x, shape=(1, 64))
    return n.done(n.softmax(n.add(n.matmul(x, n.w(64, 5)), n.w(5)), axis=1))


@case("canonicalize")
def squeeze_and_excite(n: Net) -> Module:
    x = normalised(n, n.conv(n.input(1, 3, 6, 6), n.w(4, 3, 3, 3)), 4)
    gate = n.conv(n.reduce(x, method="mean", axes=(2, 3)), n.w(2, 4, 1, 1), n.w(2))
    gate = n.clip(n.add(n.mul(n.conv(n.relu(gate), n.w(4, 2, 1, 1)), n.fill(0.2, 1)), n.fill(0.5, 1)), min=0.0, max=1.0)
    return n.done(n.mul(x, gate))
