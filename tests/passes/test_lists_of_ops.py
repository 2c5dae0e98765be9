"""Passes ask ops what they are. Lists of ops are left only where each has code of its own, and are named here."""

from __future__ import annotations

import ast
from pathlib import Path

from bmcompiler.ops import load_all

ROOT = Path(__file__).parents[2]
NAMES = {name for name, cls in load_all().items() if cls.__module__.startswith("bmcompiler.")}
CLASSES = {cls.__name__ for name, cls in load_all().items() if name in NAMES}
ALLOWED = {
    "bmcompiler/evaluation/decisions.py": "what outputs end in and are moved by, which tells what they decide",
    "passes/simplify/formulas.py": "arithmetic that is read back as formulas, a case per op",
    "passes/simplify/fold_batch_norm.py": "the four ops that become factor and offset, each in its way",
    "bmcompiler/sizes/flow.py": "how a size that is filled up goes through an op, a case per kind",
    "bmcompiler/sizes/fills.py": "what ops make of the numbers that are filled in, a case per op",
    "bmcompiler/inputs/ranges.py": "what is the same for pictures of another size, a matter of judgement",
    "bmcompiler/inputs/advice.py": "what is cheap to run on samples before a batch norm, a matter of judgement",
}


def lists_of_ops(text: str) -> list[str]:
    """Tuples, lists and sets of three or more ops, by class or by name."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            plain = [each for each in node.elts if not isinstance(each, ast.Starred)]
            by_name = all(isinstance(each, ast.Constant) and each.value in NAMES for each in plain)
            by_class = all(isinstance(each, ast.Name) and each.id in CLASSES for each in plain)
            if len(plain) > 2 and (by_name or by_class):
                found.append(ast.unparse(node))
    return found


def test_passes_and_the_core_hold_no_lists_of_ops_but_those_with_code_per_op() -> None:
    sources = [*(ROOT / "passes").rglob("*.py"), *(ROOT / "bmcompiler").rglob("*.py")]
    # where activations of recurrent layers have names of ops
    named = [path for path in sources if ROOT / "bmcompiler" / "ops" not in path.parents]
    found = {str(p.relative_to(ROOT)) for p in named if lists_of_ops(p.read_text(encoding="utf-8"))}
    assert found == set(ALLOWED)


def test_lists_of_ops_are_seen() -> None:
    assert lists_of_ops('X = frozenset(("conv", "add", "relu"))\nisinstance(op, (Conv, Add, Relu))') == [
        "('conv', 'add', 'relu')",
        "(Conv, Add, Relu)",
    ]
    assert not lists_of_ops('{"conv": 1, "add": 2, "relu": 3}, ("conv", "add"), ("max", "mean", "sum")')
