"""A target that only passes ask: it takes every op, and compiles nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bmcompiler.ir import Module
from bmcompiler.pipelines import PipelineTable
from bmcompiler.target import Compiled, Kernel, Target


class FakeTarget(Target):
    """Tests say in a subclass what it refuses (`kernel_for`) and what ops cost."""

    name = "fake"
    precisions: Sequence[str] = ()
    schemes: Sequence[str] = ("shift", "scale", "channel")
    passes = PipelineTable()

    def kernel_for(self, op: Any) -> Any:
        return Kernel()

    def kinds(self) -> Sequence[type[Kernel]]:
        return ()

    def compile(self, modules: Sequence[Module], level: int) -> Compiled:
        raise NotImplementedError

    def disassemble(self, model: Any, net: int | None = None) -> str:
        raise NotImplementedError
