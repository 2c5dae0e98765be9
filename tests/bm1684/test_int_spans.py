"""What values the results of recorded integer commands may have: exactly those from the least to the largest."""

from __future__ import annotations

from itertools import product

import pytest

from bmcompiler.backends.bm1684.packed.int_steps import IntMachine, NotExactError, limits

NUMBERS = (-128, -3, 1, 7, 127)


def ends(values: list[int], right: int, dtype: str) -> tuple[int, int]:
    """Of shifted values, rounded half up and saturated."""
    low, high = limits(dtype)
    half = 1 << right >> 1
    found = [min(max((value + half) >> right, low), high) for value in values]
    return min(found), max(found)


@pytest.mark.parametrize("left", [0, 1, 3])
@pytest.mark.parametrize("right", [0, 1, 6])
def test_products_onto_old_sums(left: int, right: int) -> None:
    asked = 0
    for factor, kind, old_kind in product(NUMBERS, ("i8", "u8"), ("i16", "u16")):
        machine = IntMachine([kind, old_kind])
        x, old = machine.inputs
        sums = [a * factor + (b << left) for a, b in product(limits(kind), limits(old_kind))]
        try:
            found = machine.mac(old, x, factor, "i16", right, left)
        except NotExactError:
            continue
        asked += 1
        assert found.span == ends(sums, right, "i16"), (factor, kind, old_kind)
    assert asked


@pytest.mark.parametrize("right", [0, 1, 6])
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_sums_differences_and_products(name: str, right: int) -> None:
    operation = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}[name]
    asked = 0
    for one, other, dtype in product(("i8", "u8"), ("i8", "u8", *NUMBERS), ("i8", "u8", "i16", "u16")):
        machine = IntMachine([one] if isinstance(other, int) else [one, other])
        second = (other, other) if isinstance(other, int) else limits(other)
        operand = other if isinstance(other, int) else machine.inputs[1]
        values = [operation(a, b) for a, b in product(limits(one), second)]
        try:
            found = getattr(machine, name)(machine.inputs[0], operand, dtype, right)
        except NotExactError:
            continue
        asked += 1
        assert found.span == ends(values, right, dtype), (one, other, dtype)
    assert asked > 10
