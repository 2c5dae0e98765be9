"""Integers of 64 bits inside a net."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from nets import Net

from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Value, verify_module
from bmcompiler.passmanager import PassContext, run_pipeline

LARGEST = 2**31 - 1


def narrowed(module: Module) -> set[str]:
    """Run the pass behind the one for the borders; returns the ops that still make i64."""
    run_pipeline(module, "narrow-borders,narrow-integers", PassContext(), verify_each=True)
    verify_module(module)
    return {op.short_name for op in module.main.ops for value in op.results if value.dtype == "i64"}


def numbers(n: Net, *values: int) -> Value:
    return n.constant(values, "int64")


def row(n: Net, at: Value) -> Value:
    return n.gather(n.w(9, 3), at, axis=0)


def square(n: Net, at: Value) -> Value:
    return n.mul(at, at, wrap=True)


PICKED: dict[str, Callable[[Net, Value], Value]] = {
    "sum": lambda n, at: row(n, n.add(at, numbers(n, 1), wrap=True)),
    "reversed": lambda n, at: row(n, n.sub(numbers(n, 8), at, wrap=True)),
    "turned": lambda n, at: row(n, n.mod(n.add(n.mod(at, numbers(n, 9)), numbers(n, 7), wrap=True), numbers(n, 9))),
    "pairs": lambda n, at: n.gather_nd(n.w(9, 9), n.reshape(n.concat(at, square(n, at), axis=0), shape=(3, 2))),
    "halved": lambda n, at: row(n, n.div(at, numbers(n, 2))),
    "larger": lambda n, at: row(n, n.max(at, numbers(n, 2))),
    "chosen": lambda n, at: row(n, n.where(n.compare(at, numbers(n, 2), method="less"), at, numbers(n, 0))),
    "replaced": lambda n, at: n.scatter_elements(n.w(9), n.cast(n.cast(at, dtype="i32"), dtype="i64"), n.w(3)),
    "cast": lambda n, at: n.cast(n.concat(at, numbers(n, 5), axis=0), dtype="f32"),
    "running": lambda n, at: row(n, n.cumulate(at, axis=0, method="sum")),
}


@pytest.mark.parametrize("name", PICKED)
def test_what_ends_in_indices_or_fits_is_computed_in_32_bits(name: str) -> None:
    n = Net()
    module = n.done(PICKED[name](n, n.input(3, dtype="i64", name="at")))
    at = np.asarray([2, 0, 1])
    (before,) = run_module(module, {"at": at}).values()
    assert not narrowed(module)
    (after,) = run_module(module, {"at": at.astype(np.int32)}).values()
    np.testing.assert_array_equal(after, before)


KEPT: dict[str, Callable[[Net, Value], Value]] = {
    "sum": lambda n, x: n.cast(n.add(x, numbers(n, 1), wrap=True), dtype="f32"),
    "rest of a sum": lambda n, x: row(n, n.mod(n.add(x, numbers(n, 1), wrap=True), numbers(n, 9))),
    "compared": lambda n, x: n.cast(n.compare(x, numbers(n, 2**40), method="less"), dtype="f32"),
    "product": lambda n, x: n.cast(square(n, x), dtype="i32"),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_may_need_more_bits_keeps_them(name: str) -> None:
    n = Net()
    module = n.done(KEPT[name](n, n.input(2, dtype="i64", name="x")))
    given = np.asarray([LARGEST, 3])
    (before,) = run_module(module, {"x": given}).values()
    assert narrowed(module)
    (after,) = run_module(module, {"x": given.astype(np.int32)}).values()
    np.testing.assert_array_equal(after, before)


def test_low_bits_are_those_of_small_integers() -> None:
    """A cast that cuts takes them of sums that do not fit."""
    n = Net()
    x = n.input(2, dtype="i64", name="x")
    module = n.done(n.cast(n.add(x, x, wrap=True), dtype="i32", truncate=True))
    given = np.asarray([LARGEST, -3])
    (before,) = run_module(module, {"x": given}).values()
    assert not narrowed(module)
    (after,) = run_module(module, {"x": given.astype(np.int32)}).values()
    np.testing.assert_array_equal(after, before)


def test_a_float_is_an_index_but_no_sum_of_it_is_narrow() -> None:
    for more, wide in ((0, set()), (1, {"cast", "add", "weight"})):
        n = Net()
        at = n.cast(n.input(2, name="x"), dtype="i64", truncate=True)
        at = n.add(at, numbers(n, more), wrap=True) if more else at
        assert narrowed(n.done(row(n, at))) == wide


def test_outputs_are_what_was_computed_without_a_cast_of_i32() -> None:
    n = Net()
    at = n.input(3, dtype="i64", name="at")
    module = n.done(n.mod(at, numbers(n, 7)))
    (before,) = run_module(module, {"at": np.asarray([9, -1, 3])}).values()
    assert not narrowed(module)
    assert [op.short_name for op in module.main.ops] == ["weight", "mod", "return"]
    (after,) = run_module(module, {"at": np.asarray([9, -1, 3], np.int32)}).values()
    np.testing.assert_array_equal(after, before)
