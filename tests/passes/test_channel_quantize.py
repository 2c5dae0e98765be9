"""The quantize pass with a scale for each output channel: what only this scheme can, and what its integers mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import Net
from test_scale_quantize import dtypes, error, quantize, samples

from bmcompiler.errors import FileFormatError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module
from bmcompiler.ir.printer import format_type, print_module
from bmcompiler.numeric import factors
from bmcompiler.ops import parse_module
from bmcompiler.ops.layers.nn import Conv, Deconv, Matmul
from bmcompiler.passes.quantization.base import NoInt8Form
from bmcompiler.passes.quantization.channel.integer_layer import channel_layer
from bmcompiler.passes.quantization.output_channels import as_weight, by_channel
from bmcompiler.passes.quantization.scale.formats import Format


def only(module: Module, kind: type[Any]) -> Any:
    (op,) = [op for op in module.main.ops if isinstance(op, kind)]
    return op


def relative(build: Callable[[Net], Module], options: str) -> np.ndarray:
    """Error of each output channel of the integer net, relative to the largest value of that channel."""
    module, exact = build(Net(3)), build(Net(3))
    data = samples(module)
    quantize(module, options, data=data)
    fed = {name: array[:1] for name, array in data.items()}
    want, got = run_module(exact, fed)["out0"], run_module(module, fed)["out0"]
    return np.abs(got - want).max((0, 2, 3)) / np.abs(want).max((0, 2, 3))


def test_channels_of_unlike_ranges_keep_their_weights() -> None:
    def layer(n: Net) -> Module:
        ranges = np.array([1.0, 0.1, 0.01])[:, None, None, None]
        return n.done(n.conv(n.input(1, 4, 9, 9), n.constant(n.random.uniform(-1, 1, (3, 4, 3, 3)) * ranges)))

    assert relative(layer, ",mode=channel,io=float").max() < 0.03
    assert relative(layer, ",mode=high,io=float").max() > 0.3


def test_factors_scales_and_biases_belong_together() -> None:
    n = Net()
    module = quantize(n.done(n.relu(n.conv(n.input(1, 4, 6, 6), n.w(5, 4, 3, 3), n.w(5)))), ",mode=channel,io=integer")
    conv = only(module, Conv)
    weight, bias, rows = conv.weight.type.quant, conv.bias, module.weights[conv.factors.op.key]
    source, result = conv.input.type.quant, conv.type.quant
    assert (weight.axis, len(weight.scales), bias.dtype) == (0, 5, "f32")
    sums = np.multiply(weight.scales, source.scale) * 2.0**conv.rshift
    np.testing.assert_allclose(rows[:, 0], sums / result.scale, rtol=2**-22)
    text = print_module(module)
    assert format_type(conv.weight.type) in text and print_module(parse_module(text)) == text


def test_depthwise_layers_have_multipliers_and_biases_in_the_scale_of_their_sums() -> None:
    n = Net()
    module = quantize(
        n.done(n.relu(n.conv(n.input(1, 5, 6, 6), n.w(5, 1, 3, 3), n.w(5), group=5))), ",mode=channel,io=integer"
    )
    conv = only(module, Conv)
    bias, rows = conv.bias.type.quant, module.weights[conv.factors.op.key]
    np.testing.assert_allclose(bias.scales, np.multiply(conv.weight.type.quant.scales, conv.input.type.quant.scale))
    sums = np.multiply(bias.scales, 2.0**conv.rshift)
    np.testing.assert_allclose(factors.real(rows), sums / conv.type.quant.scale, rtol=2**-30)


def test_a_bias_far_larger_than_its_weights_still_fits() -> None:
    def build(n: Net) -> Module:
        kernel = n.constant(np.full((2, 1, 1, 1), 1e-12))
        return n.done(n.conv(n.input(1, 2, 4, 4), kernel, n.constant([3.0, -3.0]), group=2))

    error(build, "channel", steps=1)


def test_tables_give_layers_zero_points_and_layers_take_them() -> None:
    def build(n: Net) -> Module:
        x = n.conv(n.input(1, 3, 6, 6), n.w(4, 3, 1, 1))
        return n.done(n.conv(n.mul(x, n.sigmoid(x)), n.w(2, 4, 3, 3), pads=(1, 1, 1, 1)))

    module = error(
        lambda n: n.done(n.conv(n.elu(n.input(1, 3, 6, 6)), n.w(2, 3, 3, 3), pads=(1, 1, 1, 1))), "channel", 0, 9
    )
    conv = only(module, Conv)
    assert conv.zero_points[0] > 0 and conv.input.dtype == "u8" and dtypes(module, "lut") == ["u8"]
    error(build, "channel", 0, 12)


def test_zero_points_are_part_of_the_offset_of_dense_layers() -> None:
    """So sums may be narrow where no padding stands for the zero point of the input."""

    def layer(pad: int, group: int = 1) -> Conv:
        def build(n: Net) -> Module:
            return n.done(n.conv(n.elu(n.input(1, 3, 6, 6)), n.w(3, 3 // group, 3, 3), pads=(pad,) * 4, group=group))

        return only(error(build, "channel", 0, 9), Conv)

    padded, plain, each = layer(1), layer(0), layer(1, group=3)
    assert (padded.bias.dtype, padded.narrow, padded.zero_points[1:]) == ("f32", False, (0, 0))
    assert (plain.bias.dtype, plain.narrow, plain.zero_points) == ("f32", True, ())
    assert padded.zero_points[0] == plain.input.type.quant.zero_point > 0
    assert (each.bias.dtype, each.zero_points[0]) == ("i32", padded.zero_points[0])


def test_products_of_two_tensors_and_groups_of_transposed_convolutions() -> None:
    error(lambda n: n.done(n.matmul(n.input(2, 5, 7), n.input(2, 7, 3, name="other"))), "channel", 0, 3)
    build = lambda n: n.done(n.deconv(n.input(1, 4, 3, 3), n.w(4, 2, 3, 3), n.w(4), strides=(2, 2), group=2))  # noqa: E731
    error(build, "channel", 0, 8)


def test_weights_that_are_not_finite_are_refused() -> None:
    n = Net()
    op = n.conv(n.input(1, 1, 4, 4), n.fill(1.0, 1, 1, 1, 1)).op
    with pytest.raises(FileFormatError, match="NaN or infinity"):
        channel_layer(op, np.full((1, 1, 1, 1), np.inf), None, Format("i8", 1.0), Format("i8", 1.0))


def test_a_factor_that_no_shift_makes_leaves_the_layer_in_float() -> None:
    n = Net()
    op = n.conv(n.input(1, 1, 4, 4), n.fill(1.0, 1, 1, 1, 1)).op
    with pytest.raises(NoInt8Form, match="below 2"):
        channel_layer(op, np.full((1, 1, 1, 1), 1.0), None, Format("i8", 1e20), Format("i8", 1e-20))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["conv", "deconv", "matmul", "matmul_t"]), st.integers(1, 3), st.integers(0, 1 << 20))
def test_weights_by_channel_and_back(kind: str, groups: int, seed: int) -> None:
    n = Net(seed)
    if kind == "deconv":
        weight = n.random.normal(size=(2 * groups, 3, 2, 2))
        op = n.deconv(n.input(1, 2 * groups, 4, 4), n.constant(weight), group=groups).op
        one = np.zeros(weight.shape, np.float32)
        one[groups * 2 - 1, 1] = 1  # reaches channel 1 of the last group
        assert isinstance(op, Deconv) and np.flatnonzero(by_channel(op, one).any(1)).tolist() == [3 * groups - 2]
    elif kind == "conv":
        weight = n.random.normal(size=(3 * groups, 2, 2, 2))
        op = n.conv(n.input(1, 2 * groups, 4, 4), n.constant(weight), group=groups).op
    else:
        weight = n.random.normal(size=(2, 4, 3))
        op = n.matmul(
            n.input(2, 5, 4 if kind == "matmul" else 3), n.constant(weight), transpose_right=kind != "matmul"
        ).op
        assert isinstance(op, Matmul) and len(by_channel(op, weight)) == (3 if kind == "matmul" else 4)
    np.testing.assert_array_equal(as_weight(op, by_channel(op, weight), weight.shape), weight)
