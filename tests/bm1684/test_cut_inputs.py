"""Inputs become bands of integers on their way from global memory: which do, and with the same bits everywhere."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from bm1684_nets import check, local_memory
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Quant, TensorType, Value, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.cut_inputs import CutInputs
from bmcompiler.passmanager import PassContext
from bmcompiler.target import find_target

FULL = 1 << 19


def net(
    height: int,
    width: int,
    window: int = 3,
    stride: int = 2,
    rows: int = 0,
    dtype: str = "i8",
    zero_point: int = 0,
    fill: int | None = None,
    channels: int = 3,
    rounding: str = "even",
    readers: int = 1,
    results: int = 8,
) -> Module:
    """Bands of an input, read by convolutions that pad it by half of their window."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, channels, height, width), "f32"))
    out = TensorType(x.shape, dtype, Quant(0.0625, zero_point))
    top, high = window // 2, -(-height // stride)
    rows = max(rows, -(-high // 4)) * stride
    bottom = max(0, window - stride - top)
    filling = zero_point if fill is None else fill
    whole = b.quantize(x, rounding=rounding, out=out)
    bands = b.to_bands(whole, bands=4, rows=rows, top=top, bottom=bottom, fill=filling)
    across = (width + 2 * top - window) // stride + 1
    made = [_conv(b, bands, (4, results + k, rows // stride, across), window, stride, top) for k in range(readers)]
    return b.outputs(made, [f"y{k}" for k in range(readers)])


def _conv(b: Builder, bands: Value, shape: tuple[int, ...], window: int, stride: int, pad: int) -> Value:
    rng = np.random.default_rng(window)
    weight = b.weight(rng.integers(-128, 128, (shape[1], bands.shape[1], window, window)).astype(np.int8))
    pads, out = (0, 0, pad, pad), TensorType(shape, "i8")
    return b.conv(bands, weight, None, strides=(stride, stride), pads=pads, mode="low", scale=0.0031, out=out)


def samples(module: Module) -> dict[str, np.ndarray]:
    (x,) = module.main.arguments
    return {"x": (np.random.default_rng(1).standard_normal(x.shape) * 4).astype(np.float32)}


def cut(module: Module) -> bool:
    """Whether the pass changed something; all results stay, bit for bit."""
    before = run_module(module, samples(module), target=TARGET)
    changed = CutInputs().run(module, PassContext(target=TARGET)).modified
    verify_module(module)
    for name, array in run_module(module, samples(module), target=TARGET).items():
        np.testing.assert_array_equal(array, before[name])
    return changed


@pytest.mark.parametrize("more", [{}, {"dtype": "u8", "zero_point": 9}, {"rounding": "away"}, {"window": 7}])
def test_an_input_crosses_the_bus_once(more: dict[str, Any]) -> None:
    module = net(192, 256, **more)
    assert cut(module)
    compiled = check(module, level=2, device=True, inputs=samples(module))
    (row,) = [row for row in compiled.rows if row.kind == "quantize_bands"]
    bands, channels, rows, width = row.shape
    assert row.stored == 0
    assert row.loaded <= 4 * bands * channels * (rows + 1) * width  # rows of neighbours twice, and pairs are loaded


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_rows_come_to_lie_where_windows_are_folded_from(data: st.DataObject) -> None:
    """Bands begin and end inside and outside of the image, whether it pays or not."""
    window = data.draw(st.integers(2, 7), "window")
    stride = data.draw(st.integers(1, window), "stride")
    rows, height = data.draw(st.integers(0, 24), "rows"), data.draw(st.integers(4, 120), "height")
    module = net(height, data.draw(st.integers(window, 40), "width"), window, stride, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bmcompiler.passes.layout.cut_inputs.CutInputs._is_better", lambda *_: True)
        assert cut(module)
    lanes = data.draw(st.sampled_from([FULL, FULL, 1 << 14, 1 << 12]), "lanes")
    level = data.draw(st.sampled_from([0, 1, 2]), "level")
    with local_memory(lanes):
        check(module, level=level, device=lanes == FULL, inputs=samples(module))


@pytest.mark.parametrize("level", [0, 2])
def test_bands_that_cannot_stay_are_stored_as_they_are(level: int) -> None:
    """The convolution is tiled, and reads them from global memory."""
    module = net(64, 64, results=1000)
    assert cut(module)
    with local_memory(1 << 14):
        compiled = check(module, level=level, inputs=samples(module))
    (row,) = [row for row in compiled.rows if row.kind == "quantize_bands"]
    assert row.stored == prod(row.shape)


@pytest.mark.parametrize("more", [{"fill": 5}, {"channels": 64}, {"readers": 2}, {"width": 6000}, {"height": 28}])
def test_others_stay(more: dict[str, Any]) -> None:
    """Other fillings, windows that are not folded, two readers, what does not fit, and what has arrived too soon."""
    assert not cut(net(**({"height": 192, "width": 256} | more)))


def test_targets_that_have_no_bands_keep_the_order() -> None:
    for target in (None, find_target("dv700"), find_target("bm1684x")):
        assert not CutInputs().run(net(192, 256), PassContext(target=target)).modified
