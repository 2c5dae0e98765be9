"""What integers of the scheme "scale" stand for."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.quantization.scale.formats import LEVELS, Format, single
from bmcompiler.passes.quantization.scale.layers import within


@pytest.mark.parametrize("unsigned", [False, True])
def test_a_threshold_is_the_largest_integer(unsigned: bool) -> None:
    """bm1684.md 7.2."""
    for dtype, level in LEVELS.items():
        assert level == np.iinfo(TensorType((), dtype).numpy).max
    found = Format.symmetric(6.5, unsigned=unsigned)
    most = np.iinfo(TensorType((), found.dtype).numpy).max
    assert (most, found.zero_point) == (255 if unsigned else 127, 0)
    assert found.scale == np.float32(6.5 / most)


@pytest.mark.parametrize("power", [-140, -101, -100, -99, 0, 20])
def test_scales_are_numbers_whose_products_stay_in_range(power: int) -> None:
    assert single(2.0**power) == max(2.0**power, 2.0**-100)
    assert single(1.1 * 2.0**power) == max(float(np.float32(1.1 * 2.0**power)), 2.0**-100)


@pytest.mark.parametrize(("scale", "ends"), [(1 / 64, 3.0), (1 / 32, 6.0), (1 / 16, 6.0)])
def test_a_relu6_ends_at_six_and_keeps_what_ends_before(scale: float, ends: float) -> None:
    """What is stated with a zero point too, where it ends just there."""
    b = Builder.new("net")
    relu6 = b.conv(b.input("x", TensorType((1, 1, 2, 2), "f32")), b.weight(np.ones((1, 1, 1, 1), np.float32), "w"))
    assert relu6.op is not None
    relu6.op.attributes["activation"] = "relu6"
    wanted = Format("u8", scale, 63)
    kept = wanted.top <= 6
    found = within(relu6.op, wanted)
    assert found == (wanted if kept else Format.symmetric(6.0, unsigned=True))
    assert found.top == pytest.approx(ends, rel=1e-6)
    assert within(relu6.op, Format("i8", scale)).unsigned
