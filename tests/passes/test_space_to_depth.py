"""Convolutions of long steps read cells as channels: the same sums, whatever of the map is left over or padded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.passes.layout import space_to_depth
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.target import find_target


def _stepped(shape: tuple[int, ...], weight: tuple[int, ...], **attributes: Any) -> Module:
    b = Builder.new("net")
    numbers = np.random.default_rng(0).integers(-8, 9, weight).astype(np.float32)
    bias = b.weight(np.arange(weight[0], dtype=np.float32), "b")
    return b.outputs([b.conv(b.input("x", TensorType(shape)), b.weight(numbers, "w"), bias, **attributes)], ["y"])


def _folded(module: Module, chip: str) -> bool:
    found = run_pipeline(module, "space-to-depth", PassContext(target=find_target(chip)))
    verify_module(module)
    return found


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(st.integers(1, 2), st.integers(1, 3)),
    st.tuples(st.integers(0, 40), st.integers(0, 60)),
    st.tuples(st.integers(1, 40), st.integers(17, 40)),
    st.tuples(st.integers(1, 20), st.integers(16, 33)),
    st.tuples(*[st.integers(0, 9)] * 4),
)
def test_sums_stay_whatever_is_left_over(
    outer: tuple[int, int],
    more: tuple[int, int],
    kernel: tuple[int, int],
    steps: tuple[int, int],
    pads: tuple[int, int, int, int],
) -> None:
    """Sums of small integers are exact in any order."""
    (n, channels), (h, w) = outer, (size + rest for size, rest in zip(kernel, more))
    pads = tuple(min(pad, kernel[i // 2] - 1) for i, pad in enumerate(pads))  # type: ignore[assignment]
    module = _stepped((n, channels, h, w), (5, channels, *kernel), strides=steps, pads=pads)
    x = np.random.default_rng(1).integers(-9, 10, (n, channels, h, w)).astype(np.float32)
    wanted = run_module(module, {"x": x})["y"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(space_to_depth, "_GAIN_BEYOND", 1e-9)  # whatever it takes
        assert _folded(module, "bm1684x")
    (conv,) = [op for op in module.main.ops if isinstance(op, Conv)]
    assert all(step == 1 or step < 4 for step in conv.strides)
    np.testing.assert_array_equal(run_module(module, {"x": x})["y"], wanted)


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize(
    "shape, weight, attributes",
    [
        ((1, 3, 56, 56), (16, 3, 3, 3), {"strides": (2, 2)}),
        ((1, 64, 56, 56), (64, 64, 4, 4), {"strides": (4, 4)}),  # full rounds of channels already
        ((1, 4, 40, 400), (4, 1, 1, 40), {"strides": (1, 20), "group": 4}),
        ((1, 4, 40, 400), (4, 4, 1, 9), {"strides": (1, 20), "dilations": (1, 2)}),
    ],
)
def test_others_stay(shape: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, Any], chip: str) -> None:
    assert not _folded(_stepped(shape, weight, **attributes), chip)


@pytest.mark.parametrize("weight", [(64, 64, 1, 1), (64, 64, 3, 3)])
def test_cells_of_which_windows_see_few_elements_stay(weight: tuple[int, ...]) -> None:
    """All of their elements would be moved and multiplied: twice the cycles."""
    assert not _folded(_stepped((1, 64, 128, 128), weight, strides=(16, 16)), "bm1684x")
