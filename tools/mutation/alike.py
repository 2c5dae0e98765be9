"""Faults that no test can find: wherever tests evaluate the broken expression, it has the value of the right one.

`a < b` broken to `a <= b` is found by nobody who never compares equals; `a and b` broken to `a or b` by nobody whose
operands always agree; `a * b` without `b` by nobody who has another factor than 1. One run of the tests on modules
whose expressions also evaluate what they could be broken to lists all of these at once, for every place and not only
for those that a seed draws: signs, factors, shifts, roundings, bounds, comparisons, conditions, columns, constants and
swapped arguments, in the largest expression that can be evaluated once more (`wholes`). What is no part of such a one,
as a number that is only handed on, or a call that is left out, is not looked at. `tools/alike.py` is the command.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mutation import loading
from mutation.faults import Fault, faults
from mutation.harmless import is_harmless
from mutation.limited import Limited
from mutation.reach import FOLDER, recorded_rows
from mutation.targets import GROUPS, asked_about, every_module
from mutation.wholes import BOUND, KINDS, computes, copied, function, once, truths_of, within

SLOTS = "__alike__"
Value = Callable[..., Any]


def differ(right: Any, wrong: Any) -> bool:
    """Whether these are two values."""
    if right is wrong:
        return False
    if not isinstance(right, (np.ndarray, np.generic)) and not isinstance(wrong, (np.ndarray, np.generic)):
        return bool(right != wrong)
    return np.shape(right) != np.shape(wrong) or bool(np.any(right != wrong))


class Slot:
    """An expression and its faults, of which `open` ones never had another value so far; `truth`: or held otherwise."""

    def __init__(self, slots: list[Value], names: Sequence[str], truth: bool, differing: set[str]) -> None:
        self.slots, self.number, self.truth, self.differing = slots, len(slots), truth, differing
        self.open, self.evaluated = {name: index for index, name in enumerate(names)}, False
        slots.append(self)

    def __call__(self, value: Value, wrong: Sequence[Value], operands: Sequence[Any]) -> Any:
        right, self.evaluated = value(*operands), True
        for name, index in list(self.open.items()):  # an operand may be computed by the same expression
            if self._differs(right, wrong[index], operands):
                self.differing.add(name)
                self.open.pop(name, None)
        if not self.open:
            self.slots[self.number] = _right
        return right

    def _differs(self, right: Any, wrong: Value, operands: Sequence[Any]) -> bool:
        try:
            found = wrong(*operands)
            return bool(right) != bool(found) if self.truth else differ(right, found)
        except Exception:  # what cannot be computed is noticed
            return True


def _right(value: Value, wrong: Sequence[Value], operands: Sequence[Any]) -> Any:
    return value(*operands)


class Watched(ast.NodeTransformer):
    """Expressions of functions become calls of their slots; `slot` gives the number of one with these faults."""

    def __init__(self, of_nodes: dict[int, list[Fault]], slot: Callable[[list[Fault], bool], int]) -> None:
        self.of_nodes, self.slot = of_nodes, slot
        self.truths: set[int] = set()
        self.inside = False

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Module):
            self.truths = truths_of(node)
        if isinstance(node, ast.pattern):
            return node
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            before, self.inside = self.inside, isinstance(node, ast.FunctionDef)
            self.generic_visit(node)
            self.inside = before
            return node
        read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        found = self._whole(node) if self.inside and read and isinstance(node, KINDS) else None
        return found or self._arguments(node)

    def _whole(self, node: ast.AST) -> ast.AST | None:
        """The call of its slot; None where it has no fault, or cannot be evaluated once more."""
        if isinstance(node, ast.Call) and not computes(node):
            return None
        try:
            named = {id(call): f"operand{index}" for index, call in enumerate(once(node, self.truths))}
        except LookupError:
            return None
        parts = list(within(node, named))
        found = [fault for part in parts for fault in self.of_nodes.get(id(part), ())]
        if not found or any(isinstance(part, BOUND) for part in parts):
            return None
        names = list(named.values())
        right = function(names, copied(node, named, {}))
        wrong = [function(names, copied(node, named, {id(fault.node): fault.replacement})) for fault in found]
        return self._call(
            node, found, id(node) in self.truths, right, wrong, [self.visit(call) for call in once(node, self.truths)]
        )

    def _arguments(self, node: ast.AST) -> ast.AST:
        """Arguments of a call that may be swapped are compared with each other."""
        swaps = [fault for fault in self.of_nodes.get(id(node), ()) if fault.kind == "swap"]
        plain = isinstance(node, ast.Call) and not any(isinstance(each, (ast.Starred, *BOUND)) for each in node.args)
        order = {id(each): index for index, each in enumerate(node.args)} if plain else {}  # type: ignore[attr-defined]
        swapped = [[order[id(each)] for each in fault.replacement.args] for fault in swaps if plain]  # type: ignore[attr-defined]
        self.generic_visit(node)
        if self.inside and swapped:
            names = [f"operand{index}" for index in order.values()]
            loaded = [ast.Name(name, ast.Load()) for name in names]
            right, *wrong = (
                function(names, ast.Tuple([loaded[index] for index in row], ast.Load()))
                for row in [list(order.values()), *swapped]
            )
            given = self._call(node, swaps, False, right, wrong, node.args)  # type: ignore[attr-defined]
            node.args = [ast.Starred(given, ast.Load())]  # type: ignore[attr-defined]
        return node

    def _call(
        self,
        node: ast.AST,
        found: list[Fault],
        truth: bool,
        right: ast.expr,
        wrong: list[ast.expr],
        operands: list[ast.expr],
    ) -> ast.expr:
        number = self.slot(found, truth)
        slot = ast.Subscript(ast.Name(SLOTS, ast.Load()), ast.Constant(number), ast.Load())
        given = [right, ast.Tuple(wrong, ast.Load()), ast.Tuple(operands, ast.Load())]
        return ast.copy_location(ast.Call(slot, given, []), node)


def watched_faults(module: str, tree: ast.Module) -> Iterator[Fault]:
    """Those in functions that somebody is asked about."""
    group = next(group.name for group in GROUPS if module in group.modules())
    for fault in faults(tree):
        place = f"{module.removeprefix('bmcompiler.')}:{fault.digest()}"
        if fault.function and asked_about(group, fault.function) and not is_harmless(place, fault.statement):
            yield fault


class Watcher(Limited):
    """The pytest plugin: notes which faults were evaluated and which differed, into a file."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = Path(file)
        self.slots: list[Value] = []
        self.names: dict[str, str] = {}
        self.differing: set[str] = set()
        self.made: list[Slot] = []
        self.ended = 0
        modules = every_module()
        loading.install(modules.__contains__, self.change, {SLOTS: self.slots})

    def change(self, module: str, source: str) -> ast.Module:
        tree = ast.parse(source)
        of_nodes: dict[int, list[Fault]] = {}
        for fault in watched_faults(module, tree):
            of_nodes.setdefault(id(fault.node), []).append(fault)

        def slot(found: list[Fault], truth: bool) -> int:
            names = [f"{module.removeprefix('bmcompiler.')}:{fault.digest()}" for fault in found]
            self.made.append(Slot(self.slots, names, truth, self.differing))
            return self.made[-1].number

        changed: ast.Module = Watched(of_nodes, slot).visit(tree)
        return ast.fix_missing_locations(changed)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Of files with a record the tests in it: the others take too long to be asked."""
        files = {item.path: recorded_rows(item.path, FOLDER) for item in items}
        rows = {path: record["tests"] if record else None for path, record in files.items()}
        items[:] = [item for item in items if rows[item.path] is None or item.nodeid in rows[item.path]]

    def pytest_sessionfinish(self) -> None:
        alike = {name for slot in self.made if slot.evaluated for name in slot.open}
        never = {name for slot in self.made if not slot.evaluated for name in slot.open}
        told = {"differing": sorted(self.differing), "alike": sorted(alike), "never": sorted(never)}
        self.file.write_text(json.dumps(told), encoding="utf-8")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Written now and then: a run that is ended has told most."""
        self.ended += report.when == "teardown"
        if report.when == "teardown" and self.ended % 100 == 0:
            self.pytest_sessionfinish()
