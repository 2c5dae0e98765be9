"""Bands become floats, and floats bands, without leaving local memory: which of them, and with the same bits."""

from __future__ import annotations

import numpy as np
import planned_cycles
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Quant, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.move_bands import MoveBands
from bmcompiler.passmanager import PassContext
from bmcompiler.runtime.bm1684_device import Bm1684Device
from bmcompiler.target import find_target

BYTES = Quant(0.0625, 0)


def to_floats(shape: tuple[int, ...] = (4, 96, 16, 60), height: int = 61) -> Module:
    """Bands of an image as floats."""
    b = Builder.new("net")
    x = b.input("x", TensorType(shape, "i8", BYTES))
    floats = b.dequantize(b.from_bands(b.max_pool(x, kernel=(1, 1)), height=height))
    floats.op.attributes["source.tensor"] = "image"
    return b.outputs([b.relu(floats)], ["y"])


def to_result(shape: tuple[int, ...], height: int) -> Module:
    """Bands of an image, of which a result of the net is made as floats."""
    b = Builder.new("net")
    x = b.input("x", TensorType(shape, "i8", BYTES))
    return b.outputs([b.dequantize(b.from_bands(b.max_pool(x, kernel=(1, 1)), height=height))], ["y"])


def to_bands(fill: int = 0, dtype: str = "i8", zero_point: int = 0, width: int = 60) -> Module:
    """Bands, with rows of their neighbours, of an image of floats."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 96, 61, width), "f32"))
    out = TensorType((1, 96, 61, width), dtype, Quant(0.0625, zero_point))
    whole = b.quantize(b.relu(x), rounding="away", out=out)
    return b.outputs([b.to_bands(whole, bands=4, rows=16, top=1, bottom=1, fill=fill)], ["y"])


def moved(module: Module) -> list[str]:
    """The ops after the pass; all results stay, bit for bit, also on the chip."""
    rng, (argument,) = np.random.default_rng(1), module.main.arguments
    x = rng.standard_normal(argument.shape) * (8 if argument.type.is_float else 50)
    inputs = {"x": x.astype(argument.type.numpy)}
    before = run_module(module, inputs, target=TARGET)["y"]
    MoveBands().run(module, PassContext(target=TARGET))
    verify_module(module)
    after = run_module(module, inputs, target=TARGET)["y"]
    np.testing.assert_array_equal(before.view(np.uint8), after.view(np.uint8))
    compiled = TARGET.compile([module], 2)
    results = Bm1684Device().load(compiled.model)[0].run([inputs["x"]])
    np.testing.assert_array_equal(results[0].view(np.uint8), after.view(np.uint8))
    return [op.short_name for op in module.main.ops if op.results]


def test_bands_are_joined_as_floats() -> None:
    module = to_floats()
    assert moved(module) == ["max_pool", "dequantize", "from_bands", "relu"]
    assert next(op for op in module.main.ops if op.short_name == "from_bands").attributes["source.tensor"] == "image"


@pytest.mark.parametrize(("shape", "height"), [((4, 10, 16, 60), 61), ((4, 2, 32, 120), 120), ((3, 70, 5, 8), 13)])
def test_results_are_joined_where_they_are_stored(shape: tuple[int, ...], height: int) -> None:
    module = to_result(shape, height)
    assert moved(module) == ["max_pool", "from_bands", "dequantize"]


def test_bytes_of_a_result_cross_the_bus_where_any_view_is_good() -> None:
    with planned_cycles.computations() as found:
        compiled = TARGET.compile([to_result((4, 2, 32, 120), 120)], 2)
        planned_cycles.check(found)
    rows = {row.kind: row for row in compiled.rows}
    assert rows["from_bands"].stored == rows["dequantize"].loaded == 2 * 120 * 120


@pytest.mark.parametrize(("dtype", "zero_point"), [("i8", 0), ("u8", 0), ("i8", -3)])
def test_floats_are_cut(dtype: str, zero_point: int) -> None:
    assert moved(to_bands(zero_point, dtype, zero_point)) == ["relu", "to_bands", "quantize"]


def of_cells(height: int, rows: int, top: int = 1) -> Module:
    """Bands of an image whose rows were channels when it was floats."""
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 64, height // 4, 160), "f32"))
    phases = b.quantize(b.relu(x), rounding="even", out=TensorType(x.shape, "i8", BYTES))
    image = b.interleave(phases, scale=(4, 1), channels=16)
    return b.outputs([b.to_bands(image, bands=4, rows=rows, top=top, bottom=top)], ["y"])


@pytest.mark.parametrize("height", [160, 148])
def test_images_are_cut_before_their_rows_are_joined(height: int) -> None:
    module = of_cells(height, 40)
    assert moved(module) == ["relu", "to_bands", "quantize", "interleave", "regroup_bands"]
    cells = next(op for op in module.main.ops if op.short_name == "to_bands")
    assert (cells.rows, cells.top, cells.bottom) == (10, 0, 0)


def test_bands_that_end_between_such_rows_are_cut_behind_them() -> None:
    assert moved(of_cells(160, 42)) == ["relu", "quantize", "interleave", "to_bands"]


def test_other_fillings_and_maps_that_do_not_fit_stay() -> None:
    for module in (to_bands(fill=5), to_bands(width=2000)):
        assert not MoveBands().run(module, PassContext(target=TARGET)).modified


def test_targets_that_have_no_bands_keep_the_order() -> None:
    for target in (None, find_target("dv700")):
        assert not MoveBands().run(to_floats(), PassContext(target=target)).modified
