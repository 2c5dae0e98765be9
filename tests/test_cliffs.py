"""No cliffs: ops that move pixels stay near the time of their bytes, at every batch and size, and compute the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.profile import Timing, analysis_of
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.report.data import report_data
from bmcompiler.testing import check_op

CHIPS = [("bm1684", "f32"), ("bm1684x", "f32"), ("bm1684x", "f16")]
Make = Callable[[Builder, Value], Value]
_MOST = 8
"""Times the roofline bound."""


def _shuffle(order: tuple[int, ...], size: int, last: bool) -> Make:
    def make(b: Builder, x: Value) -> Value:
        n, c, h, w = x.shape
        depth = c // size**2
        shape = (n, depth, size, size, h, w) if last else (n, size, size, depth, h, w)
        made = b.permute(b.reshape(x, shape=shape), order=order)
        return b.reshape(made, shape=(n, depth, h * size, w * size))

    return make


def _upsampled_beside(b: Builder, x: Value) -> Value:
    large = b.upsample(x, scale=(2, 2))
    return b.concat(large, b.relu(large), axis=1)


GRAPHS: dict[str, tuple[Make, tuple[int, ...], tuple[int, ...]]] = {
    "upsample x2 beside another map": (_upsampled_beside, (16, 128, 20, 20), (3, 70, 5, 6)),
    "upsample x4 to a large map": (lambda b, x: b.upsample(x, scale=(4, 4)), (1, 3, 480, 640), (1, 3, 12, 20)),
    "upsample of rows alone": (lambda b, x: b.upsample(x, scale=(3, 1)), (2, 64, 40, 40), (2, 66, 4, 5)),
    "depth to space x4": (_shuffle((0, 3, 4, 1, 5, 2), 4, last=False), (1, 48, 480, 640), (1, 48, 6, 8)),
    "pixel shuffle x2": (_shuffle((0, 1, 4, 2, 5, 3), 2, last=True), (2, 48, 120, 160), (2, 48, 6, 9)),
}
"""What makes the graph, its input at the size that is timed, and at one that is computed."""


def _timing(make: Make, shape: tuple[int, ...], chip: str, precision: str) -> Timing:
    b = Builder.new("net")
    x = b.input("x", TensorType(shape))
    with b.at("before"):
        first = b.relu(x)
    with b.at("op"):
        made = make(b, first)
    module: Module = b.outputs([made], ["y"])
    result = bmcompiler.compile_module(module, target=chip, quantize=precision)
    analysis = analysis_of(chip, result.model)
    assert analysis is not None
    return analysis.timing()


@pytest.mark.parametrize("chip, precision", CHIPS)
@pytest.mark.parametrize("name", GRAPHS)
def test_moving_pixels_takes_near_the_time_of_their_bytes(name: str, chip: str, precision: str) -> None:
    make, shape, _ = GRAPHS[name]
    found = _timing(make, shape, chip, precision)
    assert found.cycles <= _MOST * found.bound
    twice = _timing(make, (2 * shape[0], *shape[1:]), chip, precision)
    assert twice.cycles <= 2.3 * found.cycles


@pytest.mark.parametrize("chip, precision", [*CHIPS, ("bm1684", "int8"), ("bm1684x", "int8"), ("bm1880", "int8")])
@pytest.mark.parametrize("name", GRAPHS)
def test_moved_pixels_are_those_of_evaluate(name: str, chip: str, precision: str) -> None:
    make, _, shape = GRAPHS[name]
    check_op(lambda b, x: make(b, b.relu(x)), [shape], target=chip, quantize=precision, seeds=1, on_device=False)


def test_super_resolution_moves_its_pixels_in_local_memory() -> None:
    """Four times 480 x 640 in f16: 7 million cycles; the permute alone took 145 in global memory."""
    rng = np.random.default_rng(0)

    def make(b: Builder, x: Value) -> Value:
        for outputs, inputs, kernel in ((64, 3, 5), (32, 64, 3), (48, 32, 3)):
            weight = rng.standard_normal((outputs, inputs, kernel, kernel)) / np.sqrt(inputs * kernel**2)
            bias = b.weight(np.zeros(outputs, np.float32), "b")
            x = b.conv(x, b.weight(weight.astype(np.float32), "w"), bias, pads=(kernel // 2,) * 4)
            x = b.relu(x) if outputs != 48 else x
        return _shuffle((0, 1, 4, 2, 5, 3), 4, last=True)(b, x)

    assert _timing(make, (1, 3, 480, 640), "bm1684x", "f16").cycles <= 15e6


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_a_layer_far_over_its_bound_is_warned_of(chip: str) -> None:
    """A permute of single elements inside global memory; were it mended, another op would have to stand here."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 3, 480, 640)))
    with b.at("turned"):
        turned = b.permute(x, order=(0, 3, 2, 1))
    module = b.outputs([turned], ["y"])
    result = bmcompiler.compile_module(module, target=chip, quantize="f32")
    (cliff,) = report_data(result)["cliffs"]
    assert (cliff["layer"], cliff["kind"]) == ("turned", "permute") and cliff["ratio"] > _MOST
    assert "warning: layer 'turned' (permute) takes" in repr(result)


def test_a_layer_near_its_bound_is_not() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 64, 56, 56)))
    weight = b.weight(np.ones((64, 64, 3, 3), np.float32), "w")
    module = b.outputs([b.conv(x, weight, pads=(1, 1, 1, 1))], ["y"])
    result = bmcompiler.compile_module(module, target="bm1684", quantize="f32")
    assert report_data(result)["cliffs"] == [] and "times its bound" not in repr(result)


def test_every_slow_layer_of_the_summary_has_a_bound() -> None:
    """Also one that hands on what others make, so that the program's own traffic gives it none."""
    b = Builder.new("net")
    x = b.matmul(b.input("x", TensorType((2, 24, 32))), b.weight(np.ones((32, 32), np.float32), "w"))
    with b.at("heads"):
        x = b.permute(b.reshape(x, shape=(2, 24, 4, 8)), order=(0, 2, 1, 3))
    y = b.matmul(x, b.permute(x, order=(0, 1, 3, 2)))
    result = bmcompiler.compile_module(b.outputs([y], ["y"]), target="bm1684x", quantize="f32")
    analysis = analysis_of("bm1684x", result.model)
    assert analysis is not None
    assert any(layer.cycles and not layer.bound for layer in analysis.timing().layers)
    assert all(row["ratio"] > 0 for row in report_data(result)["layers"] if row["cycles"])
    lines = repr(result).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("slowest layers"))
    shown = [line.split() for line in lines[start + 1 : start + 4]]
    assert all(words[-2].endswith("%") and float(words[-1]) > 0 for words in shown)


def test_a_bound_counts_weights_not_what_a_chip_packs_them_to() -> None:
    """A factor on the DV700 is a convolution of many packed weights; it is the kernel that makes them many."""
    b = Builder.new("net")
    x = b.input("x", TensorType((16, 4, 86)))
    with b.at("factor"):
        y = b.mul(x, b.weight(np.float32([0.5]), "w"))
    result = bmcompiler.compile_module(b.outputs([y], ["y"]), target="dv700", quantize="f16")
    (row,) = report_data(result)["layers"]
    assert 0 < row["parameters"] <= 16 and row["weights"] > 10 * row["inputs"]
    assert row["bound_alone"] < row["bound"]
