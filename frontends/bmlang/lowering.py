"""The passes that a recorded program goes through."""

from __future__ import annotations

from collections.abc import Iterator

from bmcompiler.frontends.bmlang.typings import HALVES
from bmcompiler.ir import Module, Value
from bmcompiler.pipelines import WRITTEN
from bmcompiler.target import Target


def all_values(module: Module) -> Iterator[Value]:
    """What the main function takes and computes."""
    yield from module.main.arguments
    for op in module.main.ops:
        yield from op.results


def passes_of(module: Module, target: Target, level: int) -> str | None:
    """The pipeline of a program with 16-bit floats, whose types stay as they were written; None for the chip's own."""
    halves = {dtype.ir for dtype in HALVES}
    mixed = any(value.dtype in halves for value in all_values(module))
    return target.passes.text(WRITTEN, level) if mixed else None
