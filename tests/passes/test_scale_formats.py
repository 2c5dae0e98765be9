"""What integers of the scheme "scale" stand for."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.ir import TensorType
from bmcompiler.passes.quantization.scale.formats import LEVELS, Format, single


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
