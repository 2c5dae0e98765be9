"""Short sums of the scheme channel: what they and moved biases change is less than promised."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.numeric import arith, factors
from bmcompiler.passes.quantization.channel.integer_layer import narrowing, shortened
from bmcompiler.passes.quantization.scale.formats import Format

BYTES = {"i8": Format("i8", 0.02), "u8": Format("u8", 0.01)}


@pytest.mark.parametrize("kind", BYTES)
def test_depthwise_layers_with_short_sums_are_near_exact_ones(kind: str) -> None:
    """A bias of more than 16 bits moves behind the factor: no result is further away than a rounded half."""
    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, (40, 25)).astype(np.int8)
    bias = rng.integers(-400_000 if kind == "i8" else -32_000, 400_000, 40).astype(np.int32)
    rows = factors.apart(rng.uniform(2e-4, 4e-3, 40))
    x = rng.integers(0, 256, (25, 500))
    total = weight.astype(np.int64) @ x
    found = shortened(weight, bias, rows, BYTES["u8"], BYTES[kind])
    assert found is not None
    short, moved, attributes = found
    assert short.dtype == np.int16 and moved.shape == (40, 3) and attributes["narrow"]
    exact = (total + bias[:, None]) * factors.real(rows)[:, None]
    sums = arith.requantize(total + short[:, None], attributes["rshift"], "i16")
    got = factors.requantize(sums, moved[:, :1], moved[:, 1:2], kind, moved[:, 2:])
    limits = np.iinfo(got.dtype)
    off = np.abs(got - np.clip(exact, limits.min, limits.max))
    assert off.max() <= 0.5 + 1 / 16 + 2e-3
    assert not np.array_equal(got, np.clip(np.rint(exact), limits.min, limits.max)), "shifts lose something here"


def test_far_negative_biases_before_an_unsigned_result_find_no_place_behind_the_factor() -> None:
    """There the chip takes no negative number (bm1684x-cube.md 9)."""
    weight, rows = np.full((2, 9), 5, np.int8), factors.apart(np.full(2, 1e-3))
    bias = np.array([-400_000, 400_000], np.int32)
    assert shortened(weight, bias, rows, BYTES["u8"], BYTES["u8"]) is None
    assert shortened(weight, bias, rows, BYTES["u8"], BYTES["i8"]) is not None


def test_sums_stay_wide_where_steps_of_16_bits_are_too_coarse() -> None:
    weight, none = np.full((2, 600), 127, np.int8), np.zeros(2)
    alike, apart = np.array([0.002, 0.002]), np.array([0.00002, 0.1])
    assert narrowing(weight, none, alike, none, BYTES["u8"], BYTES["u8"]) == 2  # 256 / 0.002 in 2**15 - 1
    assert narrowing(weight, none, apart, none, BYTES["u8"], BYTES["u8"]) is None
    assert narrowing(weight[:, :1], none, apart, none, BYTES["u8"], BYTES["u8"]) == 0, "127 * 255 has 15 bits"
