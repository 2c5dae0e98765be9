"""Layers with a shift for each output channel, beside those in other modes of the scheme "scale"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import Net

from bmcompiler.errors import FileFormatError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Block, Module, Operation, TensorType, Value
from bmcompiler.numeric.quant_modes import quantize_away
from bmcompiler.ops import find_op
from bmcompiler.passes.quantization.output_channels import as_weight, by_channel
from bmcompiler.passes.quantization.scale.factored_layer import factored_layer
from bmcompiler.passes.quantization.scale.formats import Format, format_of
from bmcompiler.passmanager import PassContext, run_pipeline

KINDS = ("conv", "depthwise", "deconv", "matmul")
CHANNELS = 16


def layer(kind: str, channels: int = CHANNELS) -> Operation:
    """A layer of so many output channels, in no block."""
    shapes: dict[str, Any] = {"conv": (channels, 5, 3, 3), "depthwise": (channels, 1, 3, 3)}
    shapes |= {"deconv": (5, channels, 2, 2), "matmul": (5, channels)}
    more = {"conv": {}, "depthwise": {"group": channels}, "deconv": {"strides": (2, 2)}, "matmul": {}}[kind]
    x = (2, 5) if kind == "matmul" else (1, channels if kind == "depthwise" else 5, 6, 6)
    operands = [Value(TensorType(shape), Block(), k) for k, shape in enumerate((x, shapes[kind], (channels,)))]
    return find_op("conv" if kind == "depthwise" else kind)(operands, more)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 99), st.floats(-9, 3), st.sampled_from(["i8", "u8"]))
def test_weights_of_each_channel_are_as_fine_as_can_be_and_biases_have_16_bits(
    kind: str, seed: int, size: float, dtype: str
) -> None:
    rng, op = np.random.default_rng(seed), layer(kind)
    shape = op.operands[1].shape
    spread = by_channel(op, rng.standard_normal(shape)) * np.exp2(size - rng.uniform(0, 12, (CHANNELS, 1)))
    weight = as_weight(op, spread, shape)
    bias, source, wanted = rng.normal(0, 2.0**size, CHANNELS), Format("i8", 0.01), Format(dtype, 0.02 * 2.0**size)
    found = factored_layer(op, weight, bias, source, wanted)
    rows, integers = by_channel(op, weight), by_channel(op, found.weight)
    assert found.factors is not None and found.bias is not None
    shifts, shift = found.factors[:, 0].astype(int), found.attributes["rshift"]
    scales = wanted.scale / source.scale * 2.0 ** -(shift + shifts)
    np.testing.assert_array_equal(integers, np.rint(rows / scales[:, None]))
    assert shifts.min() == 0 and shifts.max() <= 7
    peaks, steps = np.abs(integers).max(1), np.abs(bias / wanted.scale) + 0.5
    finest = (peaks > 63) | (2 * steps * 2.0 ** (shift + shifts) > 32767) | (shifts == 7)
    assert finest.all()
    real = (found.bias + 2.0**shift / 2 - 2.0 ** (shift + shifts) / 2) * source.scale * scales
    np.testing.assert_allclose(real, bias, atol=source.scale * scales.max())


def test_results_are_rounded_once() -> None:
    """Half a step in the bias: floor(t / 2**k) of a sum that was rounded to t is the nearest integer."""
    op, rng = layer("matmul"), np.random.default_rng(2)
    weight = rng.standard_normal((5, CHANNELS)) * np.exp2(-(np.arange(CHANNELS) % 8))
    found = factored_layer(op, weight, None, Format("i8", 0.02), Format("i8", 0.03))
    assert found.factors is not None and found.bias is not None
    x = rng.integers(-128, 128, (200, 5))
    sums, shift = x @ found.weight.astype(int), found.attributes["rshift"]
    parts = (sums + found.bias + (1 << shift >> 1)) >> shift
    exact = sums / 2.0 ** (shift + found.factors[:, 0])
    np.testing.assert_array_equal(parts >> found.factors[:, 0], np.floor(exact + 0.5))


def test_results_get_larger_steps_where_those_of_a_channel_are_larger() -> None:
    op = layer("conv")
    weight, bias = np.full(op.operands[1].shape, 2.0), np.full(CHANNELS, 1e5)
    found = factored_layer(op, weight, bias, Format("i8", 0.01), Format("i8", 0.01))
    assert found.result.same(Format("i8", 0.01 * 2**9)) and found.bias is not None and found.bias.max() == 19532


def test_weights_must_be_finite() -> None:
    op = layer("conv")
    weight, bias = np.ones(op.operands[1].shape), np.full(CHANNELS, 1.0)
    with pytest.raises(FileFormatError, match="NaN or infinity"):
        factored_layer(op, weight, bias * np.nan, Format("i8", 0.01), Format("i8", 0.01))


def spread(loudest: float = 256.0) -> tuple[Module, dict[str, np.ndarray]]:
    """A depthwise layer, weights of whose channels differ up to 2**8, its inputs by 2**4 the other way; samples."""
    n, rng = Net(5), np.random.default_rng(5)
    factors = np.float32(loudest) ** np.linspace(0, 1, 32, dtype=np.float32)
    weight = (rng.standard_normal((32, 1, 3, 3)) * factors[:, None, None, None]).astype(np.float32)
    module = n.done(n.relu(n.conv(n.input(1, 32, 9, 9), n.b.weight(weight, "w"), n.w(32), group=32)))
    data = rng.uniform(-4, 4, (8, 32, 9, 9)) / np.sqrt(factors)[:, None, None]
    return module, {"x": data.astype(np.float32)}


def loss(mode: str) -> float:
    """Relative error of the channels with the smallest weights."""
    (module, data), (plain, _) = spread(), spread()
    (name,), array = module.main.input_names, data["x"]
    passes = f"fuse-activation,calibrate{{method=max}},quantize{{scheme=scale,mode={mode},io=integer}}"
    run_pipeline(module, passes, PassContext(data={name: array}), verify_each=True)
    formats = [format_of(value) for value in (module.main.arguments[0], module.main.returned[0])]
    fed = quantize_away(array[:1], formats[0].scale, formats[0].dtype)
    got = run_module(module, {name: fed})["out0"][:, :8] * formats[1].scale
    want = run_module(plain, {name: array[:1]})["out0"][:, :8]
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def test_small_weights_keep_their_bits_beside_large_ones() -> None:
    low, channel = loss("low"), loss("channel")
    assert channel < 0.1 < low, (low, channel)


def quantized(options: str) -> Module:
    module, data = spread()
    given = {module.main.input_names[0]: data["x"]}
    run_pipeline(
        module, f"calibrate{{method=max}},quantize{{scheme=scale,io=integer{options}}}", PassContext(data=given)
    )
    return module


def modes(module: Module) -> list[Any]:
    return [op.attributes.get("mode") for op in module.main.ops if op.short_name == "conv"]


def test_tables_name_modes_that_are_not_among_those_to_choose_from(tmp_path: Path) -> None:
    file = tmp_path / "net.modes"
    file.write_text("conv2.out channel\n")
    first = quantized(f',table="{file}"')
    assert modes(first) == ["channel"] and str(quantized(f',table="{file}"')) == str(first)
    assert modes(quantized(f',table="{file}",per_channel=true')) == ["channel"]
    file.write_text("conv2.out high\n")
    assert modes(quantized(f',table="{file}",per_channel=true')) == ["high"]
    file.write_text("conv2.out asymmetric\n")
    assert modes(quantized(f',table="{file}",per_channel=true')) == ["asymmetric"]
