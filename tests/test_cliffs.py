"""No cliffs: ops that move elements stay near the time of their bytes at every size, and compute the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest
from cliff_graphs import GRAPHS, ROWS, Make, Shape, module_of, pixels_of, sliced
from thresholds import table_of

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.analysis.profile import analysis_of
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.report.data import report_data
from bmcompiler.target import find_target
from bmcompiler.testing import check_op

CHIPS = [("bm1684", "f32"), ("bm1684x", "f32"), ("bm1684x", "f16")]
FLOATS = CHIPS[:2]
INTEGERS = [("bm1684", "int8"), ("bm1684x", "int8"), ("bm1880", "int8")]
SWEEP = pytest.mark.sweep
_MOST = 8
"""Times the roofline bound."""
ENDS = 0, 2
"""Levels at which moved elements are compared: each op alone in device memory, and all that is done for speed."""
MENDED = (
    "upsample x2 beside another map",
    "upsample x4 to a large map",
    "upsample of rows alone",
    "depth to space x4",
    "pixel shuffle x2",
    "order 0 3 2 1",
    "order 0 2 4 3 1",
    "rows and columns of a map",
    "pixel unshuffle x2",
    "Focus",
    "every second column",
    "columns reversed",
    "tile of single pixels",
    "nearest x1.5",
    "pad reflect",
    "gather of columns",
    "dilated 18",
    "dilated 36",
    "deconv k16 s8",
    "deconv k4 s2 of 4 groups",
    "group norm",
    "spectrum of sound",
    "spectra of 16 short sounds",
    "wave, 80 taps",
    "patches of 16 x 16",
    "patches of MobileViT",
    "columns of each image first",
    "split of columns",
    "softmax of 4 columns",
    "softmax of 3 columns, batch 16",
    "mean of 6 columns",
    "means of 4 large windows",
    "maxima of 4 large windows",
    "layer norm of 24 channels last",
    "scores of 6 rows",
    "scores of a row",
    "two classes",
    "long rows, few columns",
    "softmax of rows of 706 columns",
    "largest of rows of 353 columns",
)
"""One graph of each class that has been slow."""
BYTES = (
    "pixel shuffle x2",
    "space to depth x2",
    "pixel unshuffle x2",
    "order 0 3 2 1 of a map",
    "order 0 2 4 3 1",
    "every second column",
    "columns reversed",
    "concat of single columns",
    "gather of columns",
    "tile of single columns",
    "dilated 18",
    "deconv k16 s8",
)
"""Those that the BM1880 moved byte by byte, or multiplied by the zeros it put between pixels."""


class _Took(NamedTuple):
    cycles: float
    bound: float


@cache
def _timing(make: Make, shape: Shape, chip: str, precision: str) -> _Took:
    module, given = module_of(make, shape), dict[str, Path]()
    with TemporaryDirectory() as folder:
        if chip == "bm1880":
            data = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
            given = {"table": table_of(module_of(make, shape), data, Path(folder))}
        found = estimate(bmcompiler.compile_module(module, target=chip, quantize=precision, check="never", **given))
    assert found is not None and not found.cpu_records
    return _Took(found.cycles, found.bound)


def _in_turns(*chips: Sequence[tuple[str, str]], names: Iterable[str] = GRAPHS) -> list[Any]:
    """Graphs on all chips; in every run of the tests the mended ones, each in turns on one chip of each list."""
    return [
        pytest.param(name, *one, marks=[] if name in MENDED and turn == MENDED.index(name) % len(each) else SWEEP)
        for name in names
        for each in chips
        for turn, one in enumerate(each)
    ]


@pytest.mark.parametrize("name, chip, precision", _in_turns(CHIPS))
def test_slow_kinds_of_graphs_take_near_the_time_of_their_bytes_or_products(
    name: str, chip: str, precision: str
) -> None:
    make, shape, _ = GRAPHS[name]
    found = _timing(make, shape, chip, precision)
    assert found.cycles <= _MOST * found.bound


@pytest.mark.parametrize("name", BYTES)
def test_bytes_move_in_long_runs(name: str) -> None:
    make, shape, small = GRAPHS[name]
    once, twice = (_timing(make, (count * shape[0], *shape[1:]), "bm1880", "int8") for count in (1, 2))
    assert once.cycles <= _MOST * once.bound and twice.cycles <= 2.3 * once.cycles
    once: dict[str, Any] = {"seeds": 1, "levels": ENDS, "on_device": False}
    check_op(lambda b, x: make(b, b.relu(x)), [small], target="bm1880", quantize="int8", **once)


@pytest.mark.parametrize("precision", ["f16", "int8"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_share_what_a_command_costs(name: str, precision: str) -> None:
    make, shape, small = ROWS[name]
    found = _timing(make, shape, "dv700", precision)
    assert found.cycles <= 3 * found.bound
    twice = _timing(make, (2 * shape[0], *shape[1:]), "dv700", precision)
    assert twice.cycles <= 2 * found.cycles
    check_op(lambda b, x: make(b, b.relu(x)), [small], target="dv700", quantize=precision, seeds=1)


@pytest.mark.parametrize("name, chip, precision", list(_in_turns(CHIPS, names=MENDED)))
def test_twice_the_images_take_twice_the_time(name: str, chip: str, precision: str) -> None:
    make, shape, _ = GRAPHS[name]
    once, twice = (_timing(make, (count * shape[0], *shape[1:]), chip, precision).cycles for count in (1, 2))
    assert twice <= 2.3 * once


@pytest.mark.parametrize("name, chip, precision", _in_turns(CHIPS, INTEGERS))
def test_moved_elements_are_those_of_evaluate(name: str, chip: str, precision: str) -> None:
    make, _, shape = GRAPHS[name]
    once: dict[str, Any] = {"seeds": 1, "levels": ENDS, "on_device": False}
    check_op(lambda b, x: make(b, b.relu(x)), [shape], target=chip, quantize=precision, **once)


@pytest.mark.parametrize(
    "name, chip, precision",
    _in_turns(FLOATS, names=[name for name in MENDED if "large" not in name and "x4" not in name]),
)
def test_large_values_are_moved_as_small_ones(name: str, chip: str, precision: str) -> None:
    """What is done by tiles, or in several steps, is so only where that takes less time."""
    make, shape, _ = GRAPHS[name]
    check_op(lambda b, x: make(b, b.relu(x)), [shape], target=chip, quantize=precision, seeds=1, levels=(2,))


def test_super_resolution_moves_its_pixels_in_local_memory() -> None:
    """Four times 480 x 640 in f16: 7 million cycles; the permute alone took 145 in global memory."""
    rng = np.random.default_rng(0)

    def make(b: Builder, x: Value) -> Value:
        for outputs, inputs, kernel in ((64, 3, 5), (32, 64, 3), (48, 32, 3)):
            weight = rng.standard_normal((outputs, inputs, kernel, kernel)) / np.sqrt(inputs * kernel**2)
            bias = b.weight(np.zeros(outputs, np.float32), "b")
            x = b.conv(x, b.weight(weight.astype(np.float32), "w"), bias, pads=(kernel // 2,) * 4)
            x = b.relu(x) if outputs != 48 else x
        return pixels_of((0, 1, 4, 2, 5, 3), 4, last=True)(b, x)

    assert _timing(make, (1, 3, 480, 640), "bm1684x", "f16").cycles <= 15e6


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_a_layer_far_over_its_bound_is_warned_of(chip: str) -> None:
    """A permute of single elements inside global memory, which the pass `long-runs` would have mended."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 3, 480, 640)))
    with b.at("turned"):
        turned = b.permute(x, order=(0, 3, 2, 1))
    module = b.outputs([turned], ["y"])
    pipeline = find_target(chip).pipeline("f32", 2).replace(",long-runs", "")
    result = bmcompiler.compile_module(module, target=chip, quantize="f32", pipeline=pipeline)
    (cliff,) = report_data(result)["cliffs"]
    assert (cliff["layer"], cliff["kind"]) == ("turned", "permute") and cliff["ratio"] > _MOST
    assert "warning: layer 'turned' (permute) takes" in repr(result)


def test_both_directions_of_a_recurrence_are_warned_of_together() -> None:
    """Each alone takes less than what is counted."""
    rng, b = np.random.default_rng(0), Builder.new("net")
    x = b.input("x", TensorType((12, 5, 64)))

    def drawn(*shape: int) -> Value:
        return b.weight(rng.standard_normal(shape).astype(np.float32), "w")

    with b.at("both"):
        found = [
            b.recurrence(x, drawn(64, 16), drawn(5, 16), drawn(5, 16), cell="lstm", backwards=backwards)[0]
            for backwards in (False, True)
        ]
    result = bmcompiler.compile_module(b.outputs(found, ["y", "z"]), target="bm1684x", quantize="f32", check="never")
    rows = [row for row in report_data(result)["layers"] if row["layer"] == "both"]
    (cliff,) = report_data(result)["cliffs"]
    assert len(rows) == 2 and all(row["cycles"] < 50_000 for row in rows)
    assert (cliff["layer"], cliff["kind"]) == ("both", "recurrence")


def test_a_layer_near_its_bound_is_not() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 64, 56, 56)))
    weight = b.weight(np.ones((64, 64, 3, 3), np.float32), "w")
    module = b.outputs([b.conv(x, weight, pads=(1, 1, 1, 1))], ["y"])
    result = bmcompiler.compile_module(module, target="bm1684", quantize="f32")
    assert report_data(result)["cliffs"] == [] and "times its bound" not in repr(result)


def _cut_between_lanes(b: Builder) -> Value:
    """Channels that go to other lanes inside local memory: transfers alone, none of them from or to global memory."""
    x = b.relu(b.input("x", TensorType((1, 40, 24, 24))))
    return b.tanh(sliced(b, x, 1, 3, 40))


def _scores_of_heads(b: Builder) -> Value:
    """Permutes between products."""
    x = b.matmul(b.input("x", TensorType((1, 24, 256))), b.weight(np.ones((256, 256), np.float32), "w"))
    with b.at("heads"):
        x = b.permute(b.reshape(x, shape=(1, 24, 4, 64)), order=(0, 2, 1, 3))
    return b.matmul(x, b.permute(x, order=(0, 1, 3, 2)))


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize("make, without", [(_cut_between_lanes, ["slice"]), (_scores_of_heads, [])])
def test_every_slow_layer_of_the_summary_has_a_bound(
    make: Callable[[Builder], Value], without: list[str], chip: str
) -> None:
    """Also one that hands on what others make, to which the commands of the program give none."""
    b = Builder.new("net")
    result = bmcompiler.compile_module(b.outputs([make(b)], ["y"]), target=chip, quantize="f32")
    analysis = analysis_of(chip, result.model)
    assert analysis is not None
    assert [layer.kind for layer in analysis.timing().layers if layer.cycles and not layer.bound] == without
    assert all(row["ratio"] > 0 for row in report_data(result)["layers"] if row["cycles"])
    lines = repr(result).splitlines()
    start, end = (next(i for i, line in enumerate(lines) if line.startswith(at)) for at in ("slowest", "checked"))
    shown = [line.split() for line in lines[start + 1 : end] if not line.startswith("warning")]
    assert shown and all(words[-2].endswith("%") and float(words[-1]) > 0 for words in shown)


def test_a_bound_counts_weights_not_what_a_chip_packs_them_to() -> None:
    """A factor on the DV700 is a convolution of many packed weights; it is the kernel that makes them many."""
    b = Builder.new("net")
    x = b.input("x", TensorType((2, 4, 86)))
    with b.at("factor"):
        y = b.mul(x, b.weight(np.float32([0.5]), "w"))
    result = bmcompiler.compile_module(b.outputs([y], ["y"]), target="dv700", quantize="f16")
    (row,) = report_data(result)["layers"]
    assert 0 < row["parameters"] <= 16 and row["weights"] > 10 * row["inputs"]
    assert row["bound_alone"] < row["bound"]
