"""Divisions of small integers by constants: the same numbers, in fewer cycles; others stay."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, verify_module
from bmcompiler.ops.builder import Builder
from bmcompiler.passes.support.small_quotients import SmallQuotients
from bmcompiler.passmanager import PassContext

ALL, WHOLE = 1 << 20, (1, 64, 128, 128)


def divided(most: int, *divisors: int, kind: str = "div", shape: tuple[int, ...] = (1, 64)) -> Module:
    """x mod `most`, divided by each of the constants."""
    b = Builder.new("net")
    x = b.input("x", TensorType(shape, "i32"))
    small = b.mod(x, b.weight(np.array([most], np.int32), "most"))
    made = [getattr(b, kind)(small, b.weight(np.array([each], np.int32), f"b{each}")) for each in divisors]
    return b.outputs([small, *made], ["small", *(f"y{each}" for each in divisors)])


def left(module: Module) -> int:
    """Divisions after the pass, besides the one that makes small numbers."""
    SmallQuotients().run(module, PassContext(target=TARGET))
    verify_module(module)
    return sum(op.short_name in ("div", "mod") for op in module.main.ops) - 1


@pytest.mark.parametrize("kind", ["div", "mod"])
def test_dividends_give_the_bits_of_the_division(kind: str) -> None:
    """All of them as numpy computes floats, those around multiples as the chip does."""
    divisors = (1, 2, 3, 5, 7, 80, 91, 255, 1000, 4097, 65_521, ALL - 1)
    module = divided(ALL, *divisors, kind=kind, shape=WHOLE)
    assert left(module) == 0
    expected = np.floor_divide if kind == "div" else np.mod
    numbers = np.arange(ALL, dtype=np.int32).reshape(WHOLE)
    found = run_module(module, {"x": numbers})
    assert all(np.array_equal(found[f"y{each}"], expected(numbers, each)) for each in divisors)

    edges = np.random.default_rng(1).integers(0, ALL, (len(divisors), 32))
    edges -= edges % np.array(divisors)[:, None]
    edges = np.stack([edges, np.maximum(edges - 1, 0)], -1).astype(np.int32).reshape(1, -1)
    module = divided(ALL, *divisors, kind=kind, shape=edges.shape)
    assert left(module) == 0
    found = run_module(module, {"x": edges}, target=TARGET)
    assert all(np.array_equal(found[f"y{each}"], expected(edges, each)) for each in divisors)


@pytest.mark.parametrize(("most", "divisor"), [(ALL + 1, 5), (-ALL, 5), (ALL, ALL), (100, -5), (100, 0)])
def test_what_floats_might_miss_stays(most: int, divisor: int) -> None:
    assert left(divided(most, divisor)) == 1


def test_several_divisors_stay() -> None:
    b = Builder.new("net")
    x = b.input("x", TensorType((1, 2), "i32"))
    small = b.mod(x, b.weight(np.array([9], np.int32), "most"))
    assert left(b.outputs([b.div(small, b.weight(np.array([2, 3], np.int32), "b"))], ["y"])) == 1
