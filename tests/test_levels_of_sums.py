"""Passes that write a sum in another order do so at every level: floats have the same bits at levels 0 and 2."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.passmanager import PassContext, Pipeline, run_pipeline
from bmcompiler.target import find_target

MODES = [("bm1684", "f32"), ("bm1684x", "f32"), ("bm1684x", "f16"), ("bm1684x", "bf16")]
GROUPS = [(2, 5, 6), (3, 7, 4), (2, 24, 24), (4, 10, 8), (2, 33, 12)]
"""Groups, channels and outputs of each: also channels that no accumulators in turn, and no 32 at once, divide."""
WINDOWS = [(19, 16, (2, 2)), (8, 24, (3, 3)), (33, 5, (1, 2)), (24, 1, (3, 2)), (6, 5, (4, 4))]
"""Channels, outputs and window: windows of even and odd numbers of places."""
OVERLAPS: list[tuple[int, int, dict[str, tuple[int, ...]]]] = [
    (32, 16, {"window": (4, 4), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    (33, 24, {"window": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "output_pads": (1, 1)}),
    (21, 5, {"window": (16, 16), "strides": (8, 8), "pads": (4, 4, 4, 4)}),
    (19, 8, {"window": (5, 5), "strides": (3, 3)}),
    (24, 7, {"window": (4, 6), "strides": (2, 3), "pads": (0, 1, 2, 1)}),
    (64, 64, {"window": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
]
"""Channels, outputs and window of deconvolutions in which inputs meet."""


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def grouped(groups: int, depth: int, each: int) -> Module:
    """A 1x1 conv of groups with a bias."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, groups * depth, 20, 24)))
    outputs = groups * each
    weights = b.weight(_random(outputs, depth, 1, 1), "w"), b.weight(_random(outputs), "b")
    return b.outputs([b.conv(x, *weights, group=groups)], ["y"])


def apart(channels: int, outputs: int, window: tuple[int, int]) -> Module:
    """A deconv whose windows do not overlap, with a bias."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, channels, 10, 12)))
    weights = b.weight(_random(channels, outputs, *window), "w"), b.weight(_random(outputs), "b")
    return b.outputs([b.deconv(x, *weights, strides=window)], ["y"])


def overlapping(channels: int, outputs: int, attributes: dict[str, tuple[int, ...]]) -> Module:
    """A deconv whose windows overlap, with a bias and an activation."""
    b, (window, changes) = Builder.new("net"), (attributes["window"], {**attributes, "activation": "relu"})
    x = b.input("x", TensorType((1, channels, 20, 24)))
    weights = b.weight(_random(channels, outputs, *window), "w"), b.weight(_random(outputs), "b")
    del changes["window"]
    return b.outputs([b.deconv(x, *weights, **changes)], ["y"])


def _compiled(module: Module, chip: str, precision: str, level: int) -> Module:
    target = find_target(chip)
    run_pipeline(module, target.pipeline(precision, level), PassContext(target=target))
    return module


@pytest.mark.parametrize("mode", MODES, ids="-".join)
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        *((grouped, shape) for shape in GROUPS),
        *((apart, shape) for shape in WINDOWS),
        *((overlapping, shape) for shape in OVERLAPS),
    ],
)
def test_levels_sum_in_one_order(make: object, shape: tuple[object, ...], mode: tuple[str, str]) -> None:
    assert callable(make)
    modules = [_compiled(make(*shape), *mode, level) for level in (0, 2)]
    first, second = (
        run_module(module, {"x": _random(*module.main.arguments[0].shape)}, target=find_target(mode[0]))["y"]
        for module in modules
    )
    assert np.isfinite(first).all() and first.any()
    assert first.tobytes() == second.tobytes()


def test_such_sums_are_written_anew_at_level_2() -> None:
    """Else the test above would ask nothing."""
    (conv,) = (op for op in _compiled(grouped(2, 5, 6), "bm1684x", "f32", 2).main.ops if op.short_name == "conv")
    assert conv.attributes.get("group", 1) == 1
    for chip in ("bm1684", "bm1684x"):
        names = [op.short_name for op in _compiled(apart(19, 16, (2, 2)), chip, "f32", 2).main.ops]
        assert "interleave" in names and "deconv" not in names


@pytest.mark.parametrize("mode", MODES, ids="-".join)
@pytest.mark.parametrize("shape", OVERLAPS[:5], ids=str)
def test_overlapping_windows_are_written_anew_at_all_levels(
    shape: tuple[int, int, dict[str, tuple[int, ...]]], mode: tuple[str, str]
) -> None:
    for level in (0, 1, 2):
        names = [op.short_name for op in _compiled(overlapping(*shape), *mode, level).main.ops]
        assert "interleave" in names and "deconv" not in names


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_floats_in_nets_of_bytes_are_written_anew_at_all_levels(chip: str, level: int) -> None:
    """Layers that quantize left in float: of its pipeline only what takes deconvolutions."""
    target, module = find_target(chip), overlapping(*OVERLAPS[0])
    passes = Pipeline.parse(target.pipeline("int8", level))
    taking = Pipeline(tuple(each for each in passes if each.name == "split-deconv"))
    run_pipeline(module, str(taking), PassContext(target=target))
    names = [op.short_name for op in module.main.ops]
    assert "interleave" in names and "deconv" not in names
