"""A fault made in functions that exist already: their code is replaced, so that nothing has to be imported again.

What import computed with the right code stays; whoever needs to be sure imports the broken module (`loading`).
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

from mutation.faults import broken, fault_of
from mutation.targets import ROOT, file_of

Functions = dict[tuple[str, CodeType], list[FunctionType]]


def all_functions() -> Functions:
    """All of this checkout that live now, by file and code."""
    found: Functions = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(ROOT)):
            found.setdefault((each.__code__.co_filename, each.__code__), []).append(each)
    return found


def make(module: str, digest: str, functions: Functions) -> bool:
    """Put the fault into the functions of a module; False where none has its code, or none can take it.

    What stands in a class but in no function of it is done with on import. A tree that was changed anywhere may give
    other functions another code, too, which is as right as theirs.
    """
    path = file_of(module)
    source = path.read_text(encoding="utf-8")
    right = compile(ast.parse(source), str(path), "exec", dont_inherit=True)
    wrong = compile(broken(source, digest), str(path), "exec", dont_inherit=True)
    changed = [
        (function, after)
        for before, after in pairs(right, wrong)
        if before != after
        for function in functions.get((str(path), before), ())
    ]
    if any(function.__code__.co_freevars != after.co_freevars for function, after in changed):
        return False
    for function, after in changed:
        function.__code__ = after
    has_it = fault_of(ast.parse(source), digest).function
    return any(function.__qualname__.replace(".<locals>", "") == has_it for function, _ in changed)


def pairs(right: CodeType, wrong: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Codes in the same place of both, with what stands inside of them."""
    yield right, wrong
    inner = [[each for each in code.co_consts if isinstance(each, CodeType)] for code in (right, wrong)]
    if len(inner[0]) == len(inner[1]):
        for one, other in zip(*inner, strict=True):
            yield from pairs(one, other)
