"""The largest elements of an axis in order, where no engine sorts: the numbers and places that the op says."""

from __future__ import annotations

import numpy as np
import pytest

import bmcompiler
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder

SHAPES = [
    ((1, 64, 64), 8, 2),
    ((1, 1000), 5, 1),
    ((3, 7), 7, 1),
    ((2, 5, 9), 3, 1),
    ((80,), 1, 0),
    ((16, 512), 4, 1),
    ((5, 600), 450, 1),
    ((8400,), 100, 0),
    ((40, 300), 30, 1),
]


def ranked(shape: tuple[int, ...], k: int, axis: int, *, largest: bool) -> Module:
    b = Builder.new("net")
    values, places = b.top_k(b.input("x", TensorType(shape, "f32")), k=k, axis=axis, largest=largest)
    return b.outputs([values, places], ["values", "places"])


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize(("shape", "k", "axis"), SHAPES)
def test_equals_keep_their_order(shape: tuple[int, ...], k: int, axis: int, chip: str, largest: bool) -> None:
    module = ranked(shape, k, axis, largest=largest)
    x = np.round(np.random.default_rng(k).standard_normal(shape) * 20).astype(np.float32)
    wanted = run_module(module, {"x": x})
    result = bmcompiler.compile_module(module, target=chip, quantize="f32", check="always")
    assert {layer.where for layer in result.rows} <= {chip, "view"}
    found = result.run({"x": x})
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("k", [3, 40])
@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
def test_infinite_elements_are_ranked_once_each(chip: str, k: int) -> None:
    """Elements that are out are not taken again for those that are infinite: each place stands once."""
    module = ranked((2, 40), k, 1, largest=True)
    x = np.full((2, 40), -np.inf, np.float32)
    x[0, 7], x[1, 3:6] = np.inf, (1.0, -2.0, 1.0)
    result = bmcompiler.compile_module(module, target=chip, quantize="f32", check="always")
    np.testing.assert_array_equal(result.run({"x": x})["places"], run_module(module, {"x": x})["places"])


def test_what_takes_too_many_steps_is_the_hosts() -> None:
    result = bmcompiler.compile_module(ranked((1, 40_000), 100, 1, largest=True), target="bm1684", quantize="f32")
    assert {layer.where for layer in result.rows} == {"cpu"}
    assert "4,000,000 elements read in all steps, 1,048,576 at most" in result.rows[0].reason


def test_nets_of_bytes_rank_their_floats() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 16, 8, 8), "f32"))
    weight = b.weight(np.random.default_rng(1).standard_normal((12, 16, 1, 1)).astype(np.float32), "weight")
    scores = b.reshape(b.conv(x, weight), shape=(12, 64))
    module = b.outputs(list(b.top_k(scores, k=4, axis=1)), ["values", "places"])
    data = np.random.default_rng(2).standard_normal((8, 16, 8, 8)).astype(np.float32)
    result = bmcompiler.compile_module(module, target="bm1684", quantize="int8", data={"x": data}, check="always")
    assert {layer.where for layer in result.rows} == {"bm1684"}
    found, wanted = result.run({"x": data[:1]}), run_module(module, {"x": data[:1]})
    assert np.abs(found["values"] - wanted["values"]).max() < 0.05 * np.abs(wanted["values"]).max()
