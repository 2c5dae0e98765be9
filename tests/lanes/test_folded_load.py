"""Convolutions of few channels whose rows are loaded in long runs, and folded behind the load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.backends.lanes.kernels.windows.folded_load import FoldedLoad
from bmcompiler.codegen.tiling import Buffer
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.testing import check_op

CHIPS = [("bm1684", "int8"), ("bm1684", "f32"), ("bm1684x", "int8"), ("bm1684x", "f16")]
WINDOWS: dict[str, tuple[tuple[int, ...], int, dict[str, Any]]] = {
    "images of a word and more": ((8, 3, 48, 48), 3, {"pads": (0, 1, 0, 1), "strides": (2, 2)}),
    "an image in bands": ((1, 3, 33, 20), 3, {"pads": (1, 1, 1, 1)}),
    "far from each other": ((5, 2, 21, 17), 3, {"pads": (4, 3, 2, 1), "strides": (3, 2), "dilations": (4, 1)}),
    "more than a round of lanes": ((3, 8, 24, 12), 9, {"pads": (4, 4, 4, 4)}),
    "one channel": ((6, 1, 40, 31), 5, {"pads": (0, 4, 0, 0), "strides": (2, 1)}),
}


def _convolved(size: int, channels: int, **attributes: Any) -> Callable[[Builder, Value], Value]:
    rng = np.random.default_rng(1)

    def make(b: Builder, x: Value) -> Value:
        weight = rng.standard_normal((channels, x.shape[1], size, size)).astype(np.float32)
        return b.conv(
            x, b.weight(weight, "w"), b.weight(rng.standard_normal(channels).astype(np.float32), "b"), **attributes
        )

    return make


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[FoldedLoad]:
    """The loads that programs have had since."""
    found: list[FoldedLoad] = []
    made = FoldedLoad.buffer

    def buffer(self: FoldedLoad, axes: str) -> Buffer:
        found.append(self)
        return made(self, axes)

    monkeypatch.setattr(FoldedLoad, "buffer", buffer)
    return found


@pytest.mark.parametrize(("chip", "precision"), CHIPS)
@pytest.mark.parametrize("name", WINDOWS)
def test_what_is_folded_behind_a_load_is_what_windows_see(
    name: str, chip: str, precision: str, folded: list[FoldedLoad]
) -> None:
    shape, size, attributes = WINDOWS[name]
    make = _convolved(size, 20, **attributes)
    check_op(make, [shape], target=chip, quantize=precision, seeds=1, levels=(0, 2))
    assert folded or (chip, precision) == ("bm1684", "f32") or name == "one channel"


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_borders_of_another_number_than_zero_are_filled_into_the_map(chip: str, folded: list[FoldedLoad]) -> None:
    make = _convolved(3, 20, pads=(1, 1, 1, 1), strides=(2, 2))
    check_op(
        lambda b, x: make(b, b.hard_swish(x)), [(4, 3, 30, 26)], target=chip, quantize="int8", seeds=1, levels=(0,)
    )
    assert any(load.border for load in folded)


def _first_layer(batch: int) -> Module:
    b = Builder.new("net")
    x = b.input("x", TensorType((batch, 3, 48, 48)))
    with b.at("first"):
        made = _convolved(3, 18, pads=(0, 1, 0, 1), strides=(2, 2))(b, x)
    return b.outputs([made], ["y"])


@pytest.mark.parametrize("level", [0, 1])
def test_a_first_layer_that_loads_bytes_is_near_its_bound(level: int) -> None:
    """20 times as long, row by row."""
    data = {"x": np.random.default_rng(0).standard_normal((8, 3, 48, 48)).astype(np.float32)}
    result = bmcompiler.compile_module(
        _first_layer(8), target="bm1684", quantize="int8", data=data, opt=level, check="never"
    )
    found = estimate(result)
    assert found is not None
    (layer,) = (layer for layer in found.layers if layer.kind == "conv")
    assert layer.cycles <= 12000, f"{layer.cycles} cycles"


def test_so_is_one_of_floats() -> None:
    found = estimate(bmcompiler.compile_module(_first_layer(8), target="bm1684", quantize="f32", check="never"))
    assert found is not None and found.cycles <= 40000, f"{found.cycles} cycles"


def test_more_images_than_have_room_at_once_are_cut_rather_than_loaded_row_by_row() -> None:
    """What a load of rows takes is known to who cuts: 32 images took twice as long."""
    found = estimate(bmcompiler.compile_module(_first_layer(32), target="bm1684", quantize="f32", check="never"))
    assert found is not None and found.cycles <= 120000, f"{found.cycles} cycles"
