"""Messages name an option as the reader gives it: options where a command runs, arguments elsewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from bmcompiler.spelling import in_shell, spelled

ROOT = Path(__file__).parents[1]
OTHERS = {
    "backends/bm1684x/timing_profile.py": "a command of a benchmark",
    "bmcompiler/capi/build.py": "an option of Python's own build",
    "bmcompiler/conformance/onnx_suite.py": "a command of its own",
    "bmcompiler/doctor/installation.py": "an option of pip",
    "bmcompiler/proof/bundle.py": "commands to type, in a file",
    "bmcompiler/report/graph.py": "a style sheet",
    "bmcompiler/report/groups.py": "a style sheet",
    "bmcompiler/report/summary.py": "what the command has, by default",
    "bmcompiler/spelling.py": "where they are said",
}
"""Files with words that begin with two dashes, and what these are."""


@pytest.mark.parametrize(
    ("option", "shell", "python"),
    [
        (("max_error",), "--max-error", "max_error"),
        (("max_error", 3), "--max-error 3", "max_error=3"),
        (("table",), "--calibration-table", "table"),
        (("quantize", "f16", "int8"), "--quantize f16 or int8", 'quantize="f16" or "int8"'),
        (("outputs", ["a", "b"]), "--outputs a,b", 'outputs=["a", "b"]'),
        (("shapes", [[1, 3]]), '--shapes "[[1,3]]"', "shapes=[[1, 3]]"),
    ],
)
def test_an_option_is_spelled_for_who_reads_it(option: tuple[str, ...], shell: str, python: str) -> None:
    with in_shell():
        assert spelled(*option) == shell
    assert spelled(*option) == python


def test_messages_say_options_by_their_arguments() -> None:
    found = set()
    for folder in ("bmcompiler", "frontends", "passes", "backends", "runtime"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            docstrings = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
            texts = [each for each in ast.walk(tree) if isinstance(each, ast.Constant) and id(each) not in docstrings]
            if any(re.search(r"(?<![\w-])--[a-z]", each.value) for each in texts if isinstance(each.value, str)):
                found.add(path.relative_to(ROOT).as_posix())
    assert {each for each in found if not each.startswith("bmcompiler/cli/")} == set(OTHERS)
