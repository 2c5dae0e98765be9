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
    """Run the pass behind the one for the borders; returns the ops that still make wider integers than i32."""
    run_pipeline(module, "narrow-borders,narrow-integers", PassContext(), verify_each=True)
    verify_module(module)
    return {op.short_name for op in module.main.ops for value in op.results if value.dtype in ("i64", "u64", "u32")}


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


UNSIGNED: dict[str, Callable[[Net, Value, Value], Value]] = {
    "larger": lambda n, a, b: n.max(a, b),
    "quotient": lambda n, a, b: n.div(a, b),
    "rest": lambda n, a, b: n.mod(a, b),
    "bits": lambda n, a, b: n.bit_xor(n.bit_or(a, b), n.bit_and(a, b)),
    "down": lambda n, a, b: n.bit_shift(a, b, direction="right"),
    "order": lambda n, a, b: n.cast(n.compare(a, b, method="less"), dtype="f32"),
    "triangle": lambda n, a, b: n.reshape(n.trilu(n.reshape(n.concat(a, b, axis=0), shape=(2, 4))), shape=(8,)),
    "chosen": lambda n, a, b: n.where(n.compare(a, b, method="greater"), b, a),
}


@pytest.mark.parametrize("dtype", ["u32", "u64"])
@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_integers_are_computed_as_i32_where_all_fit(name: str, dtype: str) -> None:
    n = Net()
    a, b = (n.input(4, dtype=dtype, name=each) for each in "ab")
    module = n.done(UNSIGNED[name](n, a, b))
    given = {"a": np.asarray([7, 2**31 - 1, 0, 12]), "b": np.asarray([2, 0, 31, 40])}
    (before,) = run_module(module, {k: v.astype(a.type.numpy) for k, v in given.items()}).values()
    assert not narrowed(module)
    (after,) = run_module(module, {k: v.astype(np.int32) for k, v in given.items()}).values()
    np.testing.assert_array_equal(after, before)


def test_what_is_below_zero_is_zero_as_an_unsigned_integer() -> None:
    n = Net()
    x = n.input(3, name="x", dtype="i8")
    module = n.done(n.cast(n.max(n.cast(x, dtype="u64"), n.constant([2], "uint64")), dtype="i32"))
    given = {"x": np.asarray([-7, 1, 9], np.int8)}
    (before,) = run_module(module, given).values()
    assert not narrowed(module) and before.tolist() == [2, 2, 9]
    (after,) = run_module(module, given).values()
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("name", ["sum", "left"])
def test_unsigned_integers_that_may_not_fit_stay(name: str) -> None:
    n = Net()
    x = n.input(2, dtype="u32", name="x")
    module = n.done(n.add(x, x, wrap=True) if name == "sum" else n.bit_shift(x, x, direction="left"))
    assert narrowed(module)


WHOLE = [2.0**24 + 2, 2.0**31, 2.0**31 - 128, 2.0**31 + 256, 3e9, 2.0**63, 1e20, np.inf]
REALS = np.asarray([0.0, -0.0, 0.9, -0.9, np.nan, *WHOLE, *(-x for x in WHOLE)], np.float32)
"""Small ones, and those around what i32 and i64 have."""
CUT: dict[str, Callable[[Net, Value], Value]] = {
    "is an output": lambda n, x: x,
    "is moved": lambda n, x: n.reshape(n.permute(x, order=(1, 0)), shape=(3, 7)),
    "is bounded": lambda n, x: n.max(n.where(n.compare(x, n.constant([9], "int64"), method="less"), x, x), x),
    "is real again": lambda n, x: n.cast(x, dtype="f32"),
    "is both": lambda n, x: n.concat(n.cast(x, dtype="f32"), n.cast(n.cast(x, dtype="i32"), dtype="f32"), axis=0),
}


@pytest.mark.parametrize("name", CUT)
def test_reals_that_are_cut_to_whole_numbers(name: str) -> None:
    """Those that i32 does not have, too: bit for bit, as far as the border saturates."""
    n = Net()
    module = n.done(CUT[name](n, n.cast(n.input(7, 3), dtype="i64", truncate=True)))
    feed = {module.main.input_names[0]: REALS.reshape(7, 3)}
    (before,) = run_module(module, feed).values()
    if name != "is bounded":  # the comparison needs all of the number
        assert not narrowed(module)
    else:
        narrowed(module)
    (after,) = run_module(module, feed).values()
    wanted = np.clip(before, -(2**31), LARGEST) if before.dtype == np.int64 else before
    assert (after == wanted).all() and not np.signbit(after[wanted == 0]).any()
