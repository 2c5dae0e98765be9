"""Faults that no test can find: wherever tests evaluate the broken expression, it has the value of the right one.

`a < b` broken to `a <= b` is found by nobody who never compares equals; `a and b` broken to `a or b` by nobody whose
operands always agree; `a * b` without `b` by nobody who has another factor than 1. One run of the tests on modules
whose expressions also evaluate what they could be broken to lists all of these at once, for every place and not only
for those that a seed draws. `tools/alike.py` is the command.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mutation import loading
from mutation.faults import OTHER_BOUND, Fault, faults
from mutation.harmless import is_harmless
from mutation.limited import Limited
from mutation.reach import FOLDER, recorded_rows
from mutation.targets import GROUPS, asked_about, every_module

SLOTS = "__alike__"
Value = Callable[..., Any]
BINARY: dict[type[ast.operator], Value] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
COMPARE: dict[type[ast.cmpop], Value] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip


def differ(right: Any, wrong: Any) -> bool:
    """Whether these are two values."""
    if right is wrong:
        return False
    if np.shape(right) != np.shape(wrong):
        return True
    return bool(np.any(right != wrong))


class Slot:
    """An expression: its value, and those that it has when broken, of which `open` ones never differed so far."""

    def __init__(self, slots: list[Value], value: Value, wrong: dict[str, Value], differing: set[str]) -> None:
        self.slots, self.number, self.value, self.differing = slots, len(slots), value, differing
        self.open, self.evaluated = wrong, False
        slots.append(self)

    def __call__(self, *operands: Any) -> Any:
        right, self.evaluated = self.value(*operands), True
        for digest, wrong in list(self.open.items()):  # an operand may be computed by the same expression
            if self._differs(right, wrong, operands):
                self.differing.add(digest)
                self.open.pop(digest, None)
        if not self.open:
            self.slots[self.number] = self.value
        return right

    @staticmethod
    def _differs(right: Any, wrong: Value, operands: tuple[Any, ...]) -> bool:
        try:
            return differ(right, wrong(*operands))
        except Exception:  # what cannot be computed is noticed
            return True


def chain(ops: Sequence[ast.cmpop]) -> Value:
    """The value of a comparison of several."""
    functions = [COMPARE[type(op)] for op in ops]
    if len(functions) == 1:
        return functions[0]

    def value(*operands: Any) -> Any:
        result: Any = True
        for function, one, other in zip(functions, operands[:-1], operands[1:], strict=True):
            result = function(one, other)
            if not result:
                break
        return result

    return value


def chosen(node: ast.BoolOp, truth: bool) -> Value:
    """The value of `and` or `or` of operands that are evaluated when needed; `truth`: only whether it holds."""
    stops_at = isinstance(node.op, ast.Or)

    def value(*operands: Callable[[], Any]) -> Any:
        result: Any = None
        for operand in operands:
            result = operand()
            if bool(result) == stops_at:
                break
        return bool(result) if truth else result

    return value


def binary(node: ast.BinOp, fault: Fault) -> Value:
    """The value of a broken sum, product or quotient."""
    if fault.kind == "stride":
        return (lambda a, b: a) if fault.replacement is node.left else (lambda a, b: b)
    if fault.kind == "rounding":
        return lambda a, b: -(-a // b)
    return BINARY[type(fault.replacement.op)]  # type: ignore[attr-defined]


def values(node: ast.AST, of_node: list[Fault], truth: bool) -> tuple[Value, dict[str, Value]] | None:
    """The value of an expression, and those of its faults; None where this says nothing of it."""
    wrong = [(fault.digest(), fault) for fault in of_node]
    if isinstance(node, ast.Compare):
        return chain(node.ops), {name: chain(each.replacement.ops) for name, each in wrong}  # type: ignore[attr-defined]
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        return BINARY[type(node.op)], {name: binary(node, each) for name, each in wrong}
    if isinstance(node, ast.BoolOp):
        return chosen(node, truth), {name: chosen(each.replacement, truth) for name, each in wrong}  # type: ignore[arg-type]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        bound = {"min": min, "max": max}
        if node.func.id in bound and not any(isinstance(each, ast.Starred) for each in node.args):
            broken = [name for name, each in wrong if each.kind == "bound"]
            return bound[node.func.id], dict.fromkeys(broken, bound[OTHER_BOUND[node.func.id]])
    return None


class Watched(ast.NodeTransformer):
    """Expressions become calls of their slots."""

    def __init__(self, of_nodes: dict[int, list[Fault]], slot: Callable[[Value, dict[str, Value]], int]) -> None:
        self.of_nodes, self.slot = of_nodes, slot
        self.truths: set[int] = set()

    def visit(self, node: ast.AST) -> ast.AST:
        tested = [getattr(node, "test", None), *getattr(node, "ifs", ())]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            tested.append(node.operand)
        if isinstance(node, ast.BoolOp) and id(node) in self.truths:
            tested += node.values
        self.truths |= {id(each) for each in tested if each is not None}
        found = values(node, self.of_nodes.get(id(node), []), id(node) in self.truths)
        plain = isinstance(node, ast.BoolOp) and bound_to_its_place(node)
        self.generic_visit(node)
        if found is None or not found[1] or plain:
            return node
        operands = operands_of(node)
        if isinstance(node, ast.BoolOp):
            none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
            operands = [ast.Lambda(none, each) for each in operands]
        slot = ast.Subscript(ast.Name(SLOTS, ast.Load()), ast.Constant(self.slot(*found)), ast.Load())
        return ast.copy_location(ast.Call(slot, operands, []), node)


def bound_to_its_place(node: ast.AST) -> bool:
    """Whether it binds a name, waits, or asks for its method's class, which a function inside of it cannot."""
    return any(
        isinstance(each, (ast.NamedExpr, ast.Yield, ast.YieldFrom))
        or (isinstance(each, ast.Name) and each.id == "super")
        for each in ast.walk(node)
    )


def operands_of(node: ast.AST) -> list[ast.expr]:
    """What its value is computed of, in order."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    return list(node.values if isinstance(node, ast.BoolOp) else node.args)  # type: ignore[attr-defined]


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

        def slot(value: Value, wrong: dict[str, Value]) -> int:
            named = {f"{module.removeprefix('bmcompiler.')}:{digest}": each for digest, each in wrong.items()}
            self.made.append(Slot(self.slots, value, named, self.differing))
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
