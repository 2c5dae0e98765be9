"""Bands of rows against rows picked one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.errors import BMError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Quant, TensorType, Value, type_of_array, verify_module
from bmcompiler.ops.builder import Builder

_BANDS = TensorType((4, 2, 2, 3), "i8", Quant(0.5))


def _cut(b: Builder, x: Value, **more: object) -> Value:
    return b.quantize_bands(x, out=_BANDS, bands=4, rows=2, **more)


def _run(x: np.ndarray, make: object) -> np.ndarray:
    b = Builder.new("net")
    value = make(b, b.input("x", TensorType(x.shape, str(type_of_array(x).dtype))))  # type: ignore[operator]
    module = b.outputs([value], ["y"])
    verify_module(module)
    return run_module(module, {"x": x})["y"]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_bands_hold_the_rows_of_the_image(data: st.DataObject) -> None:
    bands, height = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 12))
    least = -(-height // bands)
    rows, other = (data.draw(st.integers(least, least + 3)) for _ in range(2))
    top, bottom = (data.draw(st.integers(0, 6)) for _ in range(2))
    image = np.random.default_rng(height).integers(-128, 128, (1, 2, height, 3)).astype(np.int8)
    plain = _run(image, lambda b, x: b.to_bands(x, bands=bands, rows=rows))
    assert np.array_equal(_run(plain, lambda b, x: b.from_bands(x, height=height)), image)

    plain = _with_garbage(plain, height)  # what is below the image is no part of it
    frame = {"rows": max(1, other - data.draw(st.integers(0, 2))), "top": top, "bottom": bottom, "fill": -7}
    made = _run(image, lambda b, x: b.to_bands(x, bands=bands, **frame))
    for band in range(bands):
        for row in range(made.shape[2]):
            at = band * frame["rows"] + row - top
            want = image[0, :, at] if 0 <= at < height else -7
            assert (made[band, :, row] == want).all()
    assert np.array_equal(_run(plain, lambda b, x: b.regroup_bands(x, height=height, **frame)), made)


def _with_garbage(bands: np.ndarray, height: int) -> np.ndarray:
    found, rows = bands.copy(), bands.shape[2]
    for at in range(height, len(bands) * rows):
        found[at // rows, :, at % rows] = 99
    return found


def test_bands_of_reals_are_those_of_their_integers() -> None:
    image = np.random.default_rng(1).standard_normal((1, 2, 9, 3)).astype(np.float32)
    whole, bands = (TensorType(shape, "u8", Quant(0.03125, 77)) for shape in ((1, 2, 9, 3), (4, 2, 5, 3)))
    frame = {"bands": 4, "rows": 3, "top": 1, "bottom": 1, "fill": 77}
    for rounding in ("even", "away"):
        made = _run(image, lambda b, x, way=rounding: b.quantize_bands(x, out=bands, rounding=way, **frame))
        apart = _run(image, lambda b, x, way=rounding: b.to_bands(b.quantize(x, out=whole, rounding=way), **frame))
        assert np.array_equal(made, apart)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda b, x: b.to_bands(x, bands=4, rows=0), "got 4 bands of 0 rows"),
        (lambda b, x: b.to_bands(x, bands=4, rows=2, top=-1), "must not be negative"),
        (lambda b, x: b.to_bands(x, bands=4, rows=2, fill=300), "fill 300 is no i8"),
        (lambda b, x: b.from_bands(x, height=6), "1 bands of 5 rows do not hold an image of 6 rows"),
        (_cut, "operand 'x' must be"),
        (lambda b, x: _cut(b, b.dequantize(x), rounding="up"), "away or even"),
        (lambda b, x: _cut(b, b.dequantize(x), stride=0), "must be positive"),
        (lambda b, x: b.to_bands(b.concat(x, x, axis=0), bands=4, rows=2), "one image is cut into bands, got 2"),
    ],
)
def test_what_is_no_band_is_refused(make: object, reason: str) -> None:
    b = Builder.new("net")
    x: Value = b.input("x", TensorType((1, 2, 5, 3), "i8", Quant(0.5)))
    with pytest.raises(BMError, match=reason):
        verify_module(b.outputs([make(b, x)], ["y"]))  # type: ignore[operator]
