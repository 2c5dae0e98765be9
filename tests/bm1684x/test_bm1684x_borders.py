"""Casts and quantizations at the borders of a net are cut along with the layers beside them."""

from __future__ import annotations

import numpy as np
import pytest
from lane_nets import LaneChecks

from bmcompiler import compile_module
from bmcompiler.analysis.estimate import estimate
from bmcompiler.backends.bm1684x.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.ir.keys import GROUP, SLICES
from bmcompiler.ir.types import Quant
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime.bm1684x_device import Bm1684xDevice

CHECKS = LaneChecks(TARGET, Bm1684xDevice)
CUTS = ((1, 1, 5, 1), (1, 1, 1, 3), (2, 1, 3, 2), (3, 1, 2, 1), (1, 2, 2, 1))
SHAPES = ((1, 6, 61, 70), (3, 12, 33, 40), (2, 70, 17, 23))
"""Few channels, for which casts prefer another view than the axes of feature maps; more than lanes; odd everything."""


def net(dtype: str, shape: tuple[int, ...]) -> Module:
    """Windows with a halo between two borders of the net."""
    b = Builder.new("net")
    x = b.input("x", TensorType(shape))
    if dtype in ("i8", "u8"):
        narrow = b.quantize(x, out=TensorType(shape, dtype, Quant(0.03125, 7 * (dtype == "u8"))), rounding="away")
    else:
        narrow = b.cast(x, dtype=dtype)
    pooled = b.max_pool(narrow, kernel=(3, 3), pads=(1, 1, 1, 1))
    y = b.dequantize(pooled) if dtype in ("i8", "u8") else b.cast(pooled, dtype="f32")
    return b.outputs([y], ["y"])


@pytest.mark.parametrize("dtype", ["f16", "bf16", "i8", "u8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_cut_gives_the_bits_of_the_whole(dtype: str, shape: tuple[int, ...]) -> None:
    module = net(dtype, shape)
    inputs = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    want = run_module(module, inputs, target=TARGET)["y"]
    for slices in CUTS:
        for op in module.main.ops[:-1]:
            op.attributes |= {GROUP: 0, SLICES: slices}
        compiled = TARGET.compile([module], 2)
        np.testing.assert_array_equal(CHECKS.on_device(compiled, module, inputs)["y"], want, str(slices))


def test_sixteen_bits_take_no_longer_than_32_where_few_channels_make_large_maps() -> None:
    """As the last layer of a U-Net: casts by themselves are best seen as rows in lanes, where no layer has them."""
    b = Builder.new("net")
    weight = np.random.default_rng(0).standard_normal((12, 6, 2, 2)).astype(np.float32)
    x = b.deconv(b.input("x", TensorType((1, 12, 240, 320))), b.weight(weight, "w"), strides=(2, 2))
    module, took = b.outputs([x], ["y"]), {}
    for precision in ("f32", "f16"):
        result = compile_module(module, target="bm1684x", quantize=precision, check="never")
        timing = estimate(result)
        assert timing is not None
        took[precision] = timing.cycles
        inner = [row for row in result.rows if row.kind == "interleave"]
        assert precision == "f32" or [(row.loaded, row.stored) for row in inner] == [(0, 0)]
    assert took["f16"] <= took["f32"]
