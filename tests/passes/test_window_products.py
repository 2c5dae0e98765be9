"""Products of flattened maps become convolutions: which of them, and with the same bits on the chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Quant, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.layout.window_products import WindowProducts
from bmcompiler.passes.simplify.merge_reshapes import MergeReshapes
from bmcompiler.passmanager import PassContext
from bmcompiler.runtime import Session
from bmcompiler.runtime.simulator.bm1684.analysis import analyze
from bmcompiler.target import find_target

LOW = {"mode": "low", "scale": 0.0021}
HIGH = {"mode": "high", "scale": 0.0017}
ASYMMETRIC = {"mode": "asymmetric", "scale": 0.0017, "zero_points": (3, 0, -5)}


def net(shape: tuple[int, int, int, int], columns: int, *, transposed: bool = True, **attributes: Any) -> Module:
    """A map, its product with a matrix, slopes, a second product, floats."""
    rng, b = np.random.default_rng(3), Builder.new("net")
    maps = b.input("x", TensorType(shape, "i8"))
    n, depth = shape[0], int(np.prod(shape[1:]))
    flat = b.reshape(maps, shape=(n, depth))
    weight = rng.integers(-128, 128, (columns, depth)).astype(np.int8)
    first = b.weight(weight if transposed else np.ascontiguousarray(weight.T), "w")
    bias = b.weight(rng.integers(-3000, 3000, columns).astype(np.int16), "bias")
    out = TensorType((n, columns), "i8")
    rows = rng.integers(1, 7, (columns, 1)).astype(np.int16)
    factors = b.weight(rows, "f") if attributes.get("mode") == "channel" else None
    made = b.matmul(flat, first, bias, factors, transpose_right=transposed, out=out, **attributes)
    made.op.attributes["source.tensor"] = "features"
    slope = b.weight(rng.integers(-128, 128, columns).astype(np.int8), "slope")
    made = b.prelu(made, slope, multiplier=97, rshift=7, slope_rshift=8)
    second = b.weight(rng.integers(-128, 128, (6, columns)).astype(np.int8), "v")
    last = TensorType((n, 6), "i8", Quant(0.01953125))
    made = b.matmul(made, second, transpose_right=True, out=last, **LOW)
    return b.outputs([b.dequantize(made)], ["y"])


def pulled(module: Module) -> Counter[str]:
    """The ops after the pass and the one behind it; outputs stay, bit for bit."""
    verify_module(module)
    x = np.random.default_rng(4).integers(-128, 128, module.main.arguments[0].shape).astype(np.int8)
    before = run_module(module, {"x": x})["y"]
    for step in (WindowProducts(), MergeReshapes()):
        step.run(module, PassContext(target=TARGET))
        verify_module(module)
    np.testing.assert_array_equal(before, run_module(module, {"x": x})["y"])
    return Counter(op.short_name for op in module.main.ops)


@pytest.mark.parametrize(
    ("shape", "columns", "attributes"),
    [
        ((1, 50, 4, 4), 100, LOW),
        ((1, 64, 3, 3), 128, {**HIGH, "activation": "relu"}),
        ((3, 70, 2, 5), 20, {"rshift": 9}),
        ((1, 64, 3, 3), 128, {"mode": "channel", "narrow": True, "rshift": 4}),
        ((4, 9, 1, 1), 65, {**LOW, "transposed": False}),
    ],
)
def test_products_of_maps_become_convolutions(
    shape: tuple[int, int, int, int], columns: int, attributes: Mapping[str, Any]
) -> None:
    module = net(shape, columns, **attributes)
    ops = pulled(module)
    assert (ops["conv"], ops["matmul"], ops["reshape"]) == (2, 0, 1)
    kernel = next(op for op in module.main.ops if op.short_name == "conv")
    assert kernel.operands[1].shape == (columns, *shape[1:])
    assert any(op.attributes.get("source.tensor") == "features" for op in module.main.ops)


def test_the_chip_gives_the_same_bits_and_keeps_maps_in_local_memory() -> None:
    """Both products and the slopes read what lies in lanes: nothing but input and output crosses the bus."""
    module = net((2, 50, 4, 4), 100, **LOW)
    before = analyze(TARGET.compile([module], 2).model).timing()
    pulled(module)
    model = TARGET.compile([module], 2).model
    after = analyze(model).timing()
    assert (before.spill > 0, after.spill) == (True, 0) and after.cycles < before.cycles
    x = np.random.default_rng(5).integers(-128, 128, (2, 50, 4, 4)).astype(np.int8)
    np.testing.assert_array_equal(Session(model).run({"x": x}, raw=True)["y"], run_module(module, {"x": x})["y"])


def test_products_that_gain_nothing_stay() -> None:
    assert pulled(net((1, 50, 4, 4), 100, **ASYMMETRIC))["matmul"] >= 1  # another shift (bmlang.md 3.2)
    deep = net((1, 200, 24, 24), 300, **LOW)  # weights of all columns in no local memory
    assert pulled(deep)["matmul"] >= 1


def floats(shape: tuple[int, int, int, int], columns: int) -> Module:
    rng, b = np.random.default_rng(3), Builder.new("net")
    x, depth = b.input("x", TensorType(shape)), int(np.prod(shape[1:]))
    weight = b.weight(rng.standard_normal((depth, columns)).astype(np.float32), "w")
    bias = b.weight(rng.standard_normal(columns).astype(np.float32), "bias")
    made = b.matmul(b.reshape(x, shape=(shape[0], depth)), weight, bias)
    return b.outputs([made], ["y"])


def test_floats_keep_the_order_of_their_sums() -> None:
    assert not WindowProducts().run(floats((1, 8, 4, 4), 3), PassContext(target=TARGET)).modified


def test_products_of_floats_are_convolutions_on_the_bm1684x_at_all_levels() -> None:
    """A lane's weights are one run there, as a convolution's; the bits of all levels are equal."""
    target, found = find_target("bm1684x"), []
    for level in (0, 1, 2):
        module = floats((1, 512, 1, 1), 200)
        assert WindowProducts(floats=True).run(module, PassContext(target=target)).modified
        assert Counter(op.short_name for op in module.main.ops)["conv"] == 1
        assert "window-products{floats=true}" in target.pipeline("f32", level)
        x = np.random.default_rng(5).standard_normal((1, 512, 1, 1)).astype(np.float32)
        found.append(Session(target.compile([module], level).model).run({"x": x})["y"])
        np.testing.assert_allclose(
            found[-1], run_module(floats((1, 512, 1, 1), 200), {"x": x})["y"], rtol=1e-4, atol=1e-4
        )
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def test_it_is_part_of_level_2() -> None:
    pipelines = [find_target("bm1684").pipeline("int8", level) for level in (1, 2)]
    assert ["window-products" in text for text in pipelines] == [False, True]
