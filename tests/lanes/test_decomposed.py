"""Ops that no chip has: sampled, transformed and picked by others, wholly on the chip, close to what the op says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bmcompiler
from bmcompiler.analysis.estimate import estimate
from bmcompiler.interpreter import run_module
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session

Net = Callable[[Builder], list[Value]]
NETS: dict[str, Net] = {}


def net(function: Net) -> Net:
    NETS[function.__name__.replace("_", "-")] = function
    return function


def given(b: Builder, name: str, *shape: int, dtype: str = "f32") -> Value:
    return b.input(name, TensorType(shape, dtype))


@net
def transforms(b: Builder) -> list[Value]:
    real, pairs = given(b, "real", 2, 9, 1), given(b, "pairs", 3, 6, 2, 2)
    return [
        b.dft(real, axis=1, onesided=True),
        b.dft(real, axis=1, length=5),
        b.dft(pairs, axis=1, inverse=True),
        b.dft(pairs, axis=0, length=4),
        b.dft(pairs, axis=1, inverse=True, onesided=True, length=9),
    ]


@net
def determinants(b: Builder) -> list[Value]:
    return [b.det(given(b, f"x{size}", 2, size, size)) for size in (1, 2, 3, 4)]


@net
def diagonals(b: Builder) -> list[Value]:
    x, y = given(b, "x", 2, 5, 5), given(b, "y", 3, 4, 3)
    return [b.einsum(x, equation="bii->ib"), b.einsum(x, equation="bii->b"), b.einsum(y, equation="iji->j")]


def _sampled(mode: str, padding: str, align_corners: bool) -> Net:
    def build(b: Builder) -> list[Value]:
        x, grid = given(b, "x", 2, 3, 5, 4), given(b, "grid", 2, 3, 2, 2)
        return [b.grid_sample(x, grid, mode=mode, padding=padding, align_corners=align_corners)]

    return build


for _mode, _padding, _align in (("nearest", "zeros", False), ("linear", "border", True)):
    NETS[f"sampled-{_mode}"] = _sampled(_mode, _padding, _align)


@net
def sampled_lines(b: Builder) -> list[Value]:
    x, grid = given(b, "x", 2, 3, 7), given(b, "grid", 2, 5, 1)
    return [b.grid_sample(x, grid, mode="cubic", padding=padding) for padding in ("border", "reflection")]


@net
def cropped(b: Builder) -> list[Value]:
    more = {"mode": "linear", "coordinates": "tf_crop_and_resize", "extrapolation": 7.5}
    roi = (0.0, 0.0, 0.2, -0.3, 1.0, 1.0, 0.9, 1.0)
    return [b.resize(given(b, "x", 1, 2, 5, 6), sizes=(1, 2, 3, 4), scales=(1.0, 1.0, 0.6, 0.66), roi=roi, **more)]


@net
def regions(b: Builder) -> list[Value]:
    x, rois, images = given(b, "x", 3, 2, 5, 6), given(b, "rois", 4, 4), given(b, "images", 4, dtype="i32")
    spread = b.mul(rois, b.weight(np.array([[1, 1, 4, 4]], np.float32), "spread"))
    more = {"size": (2, 3), "spatial_scale": 0.8}
    return [
        b.roi_align(x, spread, images, samples=2, **more),
        b.roi_align(x, spread, images, samples=1, method="max", half_pixel=False, **more),
    ]


@net
def constant_regions(b: Builder) -> list[Value]:
    """As many samples as a region is large; some lie outside of the image."""
    x, images = given(b, "x", 3, 2, 5, 6), b.weight(np.array([2, 0, -1, 1], np.int32), "images")
    corners = np.array([[0, 0, 5, 4], [-3, 1.5, 9, 2.5], [2, 2, 2, 2], [1, -2, 4, 11]], np.float32)
    rois, more = b.weight(corners, "rois"), {"size": (2, 3), "spatial_scale": 0.8}
    return [b.roi_align(x, rois, images, half_pixel=half, **more) for half in (True, False)]


def _reduced(reduction: str) -> Net:
    """Duplicates among indices of either sign."""

    def build(b: Builder) -> list[Value]:
        x, index, updates = given(b, "x", 3, 4, 5), given(b, "i", 3, 9, 4, dtype="i32"), given(b, "u", 3, 9, 4)
        tuples, rows = given(b, "t", 6, 2, dtype="i32"), given(b, "r", 6, 5)
        more = {"reduction": reduction}
        return [b.scatter_elements(x, index, updates, axis=1, **more), b.scatter_nd(x, tuples, rows, **more)]

    return build


NETS |= {f"reduced-{method}": _reduced(method) for method in ("add", "mul", "max", "min")}


@net
def picked(b: Builder) -> list[Value]:
    x, index = given(b, "x", 2, 4, 3), given(b, "i", 2, 7, 3, dtype="i32")
    return [b.gather_elements(x, index, axis=1), b.gather(x, given(b, "rows", 5, dtype="i32"), axis=1)]


@net
def largest_and_back(b: Builder) -> list[Value]:
    x = given(b, "x", 1, 2, 6, 8)
    mask = b.max_pool_mask(x, kernel=(2, 2), strides=(2, 2))
    border = b.max_pool_mask(x, kernel=(3, 2), strides=(2, 3), pads=(1, 1, 1, 0), dilations=(1, 2))
    return [border, b.max_unpool(b.max_pool(x, kernel=(2, 2), strides=(2, 2)), mask, size=(6, 8))]


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    random = np.random.default_rng(len(shape))
    if dtype == "f32":
        return random.uniform(-1.4, 1.4, shape).astype(np.float32)
    return random.integers(-3, 3, shape).astype(np.int32)


@pytest.mark.parametrize("chip", ["bm1684", "bm1684x"])
@pytest.mark.parametrize("name", NETS)
def test_nothing_is_left_to_the_host(name: str, chip: str) -> None:
    b = Builder.new("net")
    made = NETS[name](b)
    module = b.outputs(made, [f"y{i}" for i in range(len(made))])
    arguments = zip(module.main.input_names, module.main.arguments)
    feeds = {given: numbers(value.dtype, value.shape) for given, value in arguments}
    wanted = run_module(module, feeds)
    result = bmcompiler.compile_module(module, target=chip, quantize="f32")
    assert {layer.where for layer in result.rows} <= {chip, "view"}
    for given_name, array in Session(result.model).run(feeds).items():
        np.testing.assert_allclose(array, wanted[given_name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("precision", ["f16", "int8"])
def test_places_stay_exact_in_nets_of_narrow_numbers(precision: str) -> None:
    """3,000 elements: neither 16-bit floats nor bytes could count them."""
    b = Builder.new("net")
    x, grid = given(b, "x", 1, 1, 1, 3000), given(b, "grid", 1, 1, 40, 2)
    module = b.outputs([b.grid_sample(x, grid, mode="nearest", padding="border")], ["y"])
    feeds = {"x": np.arange(3000, dtype=np.float32).reshape(1, 1, 1, -1) % 100, "grid": numbers("f32", (1, 1, 40, 2))}
    wanted = run_module(module, feeds)["y"]
    samples = {} if precision == "f16" else {"data": feeds}
    result = bmcompiler.compile_module(module, target="bm1684x", quantize=precision, **samples)
    np.testing.assert_allclose(Session(result.model).run(feeds)["y"], wanted, atol=1)


def test_a_map_that_is_too_large_to_be_sampled_says_its_limit() -> None:
    b = Builder.new("net")
    made = [b.grid_sample(given(b, "x", 1, 3, 256, 300), given(b, "grid", 1, 64, 64, 2), mode="linear")]
    (row,) = bmcompiler.compile_module(b.outputs(made, ["y"]), target="bm1684", quantize="f32").rows
    assert row.where == "cpu" and "314,572,800 weights, 16,777,216 at most" in row.reason


@pytest.mark.parametrize(("channels", "size", "images", "most"), [(3, 48, 2, 70_000), (200, 4, 1, 12_000)])
def test_neighbours_are_picked_in_the_quicker_way(channels: int, size: int, images: int, most: int) -> None:
    """A row of few channels moves as slowly as one of many (48 x 48 of 2 images by rows: 320,000 cycles)."""
    b = Builder.new("net")
    x, grid = given(b, "x", images, channels, size, size), given(b, "grid", images, size, size, 2)
    module = b.outputs([b.grid_sample(x, grid, mode="linear", padding="zeros")], ["y"])
    feeds = {"x": numbers("f32", x.shape), "grid": numbers("f32", grid.shape)}
    result = bmcompiler.compile_module(module, target="bm1684x", quantize="f32")
    timing = estimate(result)
    assert timing is not None and timing.cycles < most
    wanted = run_module(module, feeds)["y"]
    np.testing.assert_allclose(Session(result.model).run(feeds)["y"], wanted, rtol=1e-5, atol=1e-5)
    gathers = [op for op in result.module.main.ops if op.short_name == "gather"]
    assert {op.axis for op in gathers} == {1 if channels == 3 else 0}
