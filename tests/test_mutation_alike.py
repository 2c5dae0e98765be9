"""Faults that no test can find are listed: expressions that never had another value than when they are broken."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from mutation.alike import SLOTS, Slot, Watched, differ
from mutation.faults import faults


def watched(code: str) -> tuple[Callable[..., Any], Callable[[], set[str]]]:
    """A function of a, b, c, and what asks which broken expressions in it never had another value so far."""
    tree = ast.parse(f"def f(a, b, c):\n    {code}")
    of_nodes: dict[int, list[Any]] = {}
    names: dict[str, str] = {}
    for fault in faults(tree):
        of_nodes.setdefault(id(fault.node), []).append(fault)
        names[fault.digest()] = fault.wrong
    slots: list[Any] = []
    made: list[Slot] = []

    def slot(found: list[Any], truth: bool) -> int:
        made.append(Slot(slots, [fault.digest() for fault in found], truth, set()))
        return made[-1].number

    changed = ast.fix_missing_locations(Watched(of_nodes, slot).visit(tree))
    there: dict[str, Any] = {SLOTS: slots, "np": np}
    exec(compile(changed, "f", "exec"), there)
    return there["f"], lambda: {names[each] for one in made for each in one.open}


CASES = [
    ("return a < b", (1, 2, 0), (2, 2, 0), {"a <= b"}),
    ("return a <= b < c", (1, 2, 3), (2, 2, 3), {"a < b < c"}),
    ("return a <= b < c", (1, 2, 3), (1, 3, 3), {"a <= b <= c"}),
    ("return a + b", (1, 0, 0), (1, 2, 0), {"a - b"}),
    ("return a * b", (3, 1, 0), (3, 2, 0), {"a"}),
    ("return a * b", (1, 3, 0), (2, 3, 0), {"b"}),
    ("return a // b", (6, 3, 0), (7, 3, 0), {"-(-a // b)"}),
    ("return min(a, b)", (2, 2, 0), (1, 2, 0), {"max(a, b)"}),
    ("return a or b", (3, 3, 0), (0, 3, 0), {"a and b"}),
    ("return c if a and b else 0", (1, 2, 5), (0, 2, 5), {"a or b"}),
    ("return -a", (0, 0, 0), (1, 0, 0), {"a"}),
    ("return a << b", (0, 3, 0), (1, 3, 0), {"a << b + 1"}),
    ("return c * (a < 7)", (6, 0, 0), (6, 0, 1), {"6"}),
    ("return a[1] + b", ((2, 2), 1, 0), ((2, 3), 1, 0), {"a[0]"}),
    ("return a.get(b, 0)", ({1: 2}, 1, 0), ({1: 2}, 2, 0), {"1"}),
    ("return next((i for i in a if i > b), 0)", ((1, 2), 1, 0), ((1, 2), 2, 0), {"1", "-1"}),
    ("return divmod(a, b)[0]", (5, 5, 0), (5, 4, 0), {"divmod(b, a)"}),
    ("return 1 if divmod(a, b) else 0", (5, 5, 0), (5, 4, 0), {"divmod(b, a)"}),
    ("return a + (1 if b and c.isdigit() else 0)", (1, 1, "1"), (1, 0, "1"), {"b or c.isdigit()"}),
    ("return np.rint(a).item() + b", (2.0, 0, 0), (2.5, 0, 0), set()),
    ("return np.maximum(a, b)", (2, 2, 0), (1, 2, 0), {"np.minimum"}),
    ("return a is not None and a.size > 1", (np.zeros(2), 0, 0), (None, 0, 0), {"a is not None or a.size > 1"}),
]


@pytest.mark.parametrize(("code", "alike", "apart", "wrong"), CASES)
def test_an_expression_is_listed_until_it_has_another_value(
    code: str, alike: tuple[Any, ...], apart: tuple[Any, ...], wrong: set[str]
) -> None:
    function, left = watched(code)
    plain: dict[str, Any] = {"np": np}
    exec(f"def f(a, b, c):\n    {code}", plain)
    assert function(*alike) == plain["f"](*alike)
    assert wrong <= left()
    assert function(*apart) == plain["f"](*apart)
    assert not wrong & left()


def test_what_binds_names_stays_where_it_is() -> None:
    function, _ = watched("return (x := a) and x + 1")
    assert function(2, 0, 0) == 3


def test_arrays_differ_where_an_element_does() -> None:
    ones = np.ones(3, np.int32)
    assert differ(ones, ones + 1) and differ(ones, ones[:1]) and not differ(ones, ones.copy())
