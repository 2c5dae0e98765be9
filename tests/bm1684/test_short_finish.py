"""The short end of the high and asymmetric modes: its numbers give the bits of the modes, and so do all its forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bm1684_nets import Net, check, check_op
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.packed import int_short
from bmcompiler.backends.lanes.recipes.int_numbers import MIDDLE, MIDDLE_BITS, Ending, Numbers, find_numbers
from bmcompiler.ir import TensorType, Value
from bmcompiler.numeric.quant_modes import from_real

ALL_T = np.arange(-(1 << 15), 1 << 15).astype(np.float32)
BOUNDS = np.array([-(1 << 15)]), np.array([(1 << 15) - 1])


def whole_by_addition(end: Ending, found: Numbers, channel: int) -> np.ndarray:
    """What the commands compute of every t, saturated."""
    sums = ALL_T * np.float32(found.factor)
    if found.vector is not None:
        sums = sums + found.vector[channel]
    if found.clipped:
        sums = np.clip(sums, np.float32(end.low), np.float32(end.high))
    words = (sums + np.float32(MIDDLE + end.point)).view(np.int32) - np.int32(MIDDLE_BITS)
    assert np.abs(words).max() < 1 << 15
    return np.clip(words - end.point, end.low, end.high)


@pytest.mark.parametrize("side", [-1, 1])
def test_sums_are_limited_from_the_first_number_on_that_leaves_16_bits_with_a_zero_point(side: int) -> None:
    end, other = Ending(1.0, None, -128, 127, 0), np.array([0])
    for largest, clipped in (((1 << 15) - 512, False), ((1 << 15) - 511, True)):
        found = find_numbers(end, tuple(sorted((np.array([side * largest]), other))))  # type: ignore[arg-type]
        assert found is not None and found.clipped is clipped


def exact(end: Ending, channel: int) -> np.ndarray:
    sums = ALL_T * np.float32(end.factor)
    if end.vector is not None:
        sums = sums + end.vector[channel]
    return from_real(np.clip(sums, np.float32(end.low), np.float32(end.high)), "i16")


factors = st.one_of(st.floats(0.5, 2.0, width=32, exclude_min=True), st.sampled_from([0.75, 1.0, 1.5, 3.0, 100.0]))
points = st.one_of(st.just(0), st.integers(-128, 127))
added = st.one_of(st.floats(-400, 400, width=32), st.integers(-40, 40).map(lambda k: k / 8), st.just(1e6))


@settings(max_examples=60, deadline=None)
@given(factors, st.one_of(st.none(), st.lists(added, min_size=1, max_size=3)), points)
def test_numbers_that_are_found_give_the_bits_of_the_mode(
    factor: float, vector: list[float] | None, point: int
) -> None:
    vectors = None if vector is None else np.array(vector, np.float32)
    end = Ending(factor, vectors, -128 - point, 127 - point, point)
    channels = 1 if vectors is None else len(vectors)
    found = find_numbers(end, tuple(np.repeat(bound, channels) for bound in BOUNDS))  # type: ignore[arg-type]
    if found is not None:
        for channel in range(channels):
            np.testing.assert_array_equal(whole_by_addition(end, found, channel), exact(end, channel))


def test_numbers_are_found_where_all_sums_are_halves_and_for_ordinary_layers() -> None:
    halves = Ending(1.0, np.array([0.5, -0.5, 3.5], np.float32), -128, 127, 0)
    assert find_numbers(halves, tuple(np.repeat(b, 3) for b in BOUNDS)) is not None  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    many = Ending(float(np.float32(0.7123)), rng.normal(0, 50, 2000).astype(np.float32), 0, 255, -128)
    assert find_numbers(many, tuple(np.repeat(b, 2000) for b in BOUNDS)) is not None  # type: ignore[arg-type]


def test_sums_that_exceed_16_bits_are_limited() -> None:
    tight = Ending(0.75, None, -128, 127, 0)
    wide = Ending(1.5, None, -128, 127, 0)
    found = [find_numbers(end, BOUNDS) for end in (tight, wide)]
    assert [each is not None and each.clipped for each in found] == [False, True]


@pytest.mark.parametrize("form", ["none", "clipped"])
@pytest.mark.parametrize("images", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("mode", ["high", "asymmetric"])
def test_all_forms_compute_the_same(monkeypatch: pytest.MonkeyPatch, form: str, images: int, mode: str) -> None:
    def forced(end: Ending, bounds: Any) -> Numbers | None:
        found = find_numbers(end, bounds)
        return None if form == "none" or found is None else replace(found, clipped=True)

    monkeypatch.setattr(int_short, "find_numbers", forced)
    attributes: dict[str, Any] = {"mode": mode, "scale": 0.0123}
    if mode == "asymmetric":
        attributes |= {"zero_points": (3, -5, 40)}

    def make(net: Net, x: Value) -> Value:
        weight, bias = net.integers("i8", 70, 5, 3, 3), net.integers("i16", 70)
        out = TensorType((images, 70, 6, 7), "u8" if images % 2 else "i8")
        return net.b.conv(x, weight, bias, pads=(1, 1, 1, 1), out=out, **attributes)

    check_op(make, (images, 5, 6, 7), dtype="u8")


@pytest.mark.parametrize(("mode", "more"), [("high", 7), ("asymmetric", 8)])
def test_four_images_take_few_commands_after_the_sums(mode: str, more: int) -> None:
    """Signed bytes without a second sum; in the mode high nothing is added."""
    net = Net([(4, 16, 6, 6)], dtype="i8")
    geometry = {"mode": mode, "scale": 0.0123, "out": TensorType((4, 64, 6, 6), "i8")}
    if mode == "asymmetric":
        geometry["zero_points"] = (0, 0, 0)
    y = net.b.conv(net.inputs[0], net.integers("i8", 64, 16, 1, 1), net.integers("i16", 64), **geometry)
    assert check(net.module([y])).totals["TIU commands"] == 1 + more


@settings(max_examples=30, deadline=None)
@given(
    depth=st.integers(1, 300),
    scale=st.sampled_from([0.001, 0.003, 0.01, 0.05, 0.3, 1.0]),
    dtype=st.sampled_from(["i8", "u8"]),
    mode=st.sampled_from(["high", "asymmetric"]),
    images=st.integers(1, 5),
)
@example(depth=60, scale=0.05, dtype="i8", mode="high", images=1)
@example(depth=60, scale=0.05, dtype="i8", mode="high", images=4)
def test_sums_at_both_ends_are_limited_like_all_others(
    depth: int, scale: float, dtype: str, mode: str, images: int
) -> None:
    """The first image makes the largest and the smallest sums that the weights allow, the second the other ones."""
    net = Net([(images, depth, 1, 1)], dtype=dtype)
    signs = np.where(np.arange(depth) % 3, 1, -1)
    weight = np.stack([127 * signs, -127 * signs, 100 * signs, signs]).astype(np.int8)
    attributes: dict[str, Any] = {"mode": mode, "scale": scale, "out": TensorType((images, 4, 1, 1), "i8")}
    attributes |= {"zero_points": (0, 0, 0)} if mode == "asymmetric" else {}
    y = net.b.conv(net.inputs[0], net.b.weight(weight.reshape(4, depth, 1, 1), "w"), None, **attributes)
    ends = np.iinfo(net.inputs[0].type.numpy)
    x = np.stack([np.where(signs * (-1) ** image > 0, ends.max, ends.min) for image in range(images)])
    module = net.module([y])
    check(module, inputs={module.main.input_names[0]: x.reshape(images, depth, 1, 1).astype(ends.dtype)})
