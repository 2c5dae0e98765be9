"""Bands of rows against rows picked one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.errors import BMError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder


def _run(x: np.ndarray, make: object) -> np.ndarray:
    b = Builder.new("net")
    value = make(b, b.input("x", TensorType(x.shape, str(np.dtype(x.dtype)).replace("uint", "u").replace("int", "i"))))  # type: ignore[operator]
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


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda b, x: b.to_bands(x, bands=4, rows=0), "got 4 bands of 0 rows"),
        (lambda b, x: b.to_bands(x, bands=4, rows=2, top=-1), "must not be negative"),
        (lambda b, x: b.to_bands(x, bands=4, rows=2, fill=300), "fill 300 is no i8"),
        (lambda b, x: b.from_bands(x, height=6), "1 bands of 5 rows do not hold an image of 6 rows"),
        (lambda b, x: b.to_bands(b.concat(x, x, axis=0), bands=4, rows=2), "one image is cut into bands, got 2"),
    ],
)
def test_what_is_no_band_is_refused(make: object, reason: str) -> None:
    b = Builder.new("net")
    x: Value = b.input("x", TensorType((1, 2, 5, 3), "i8"))
    with pytest.raises(BMError, match=reason):
        verify_module(b.outputs([make(b, x)], ["y"]))  # type: ignore[operator]
