"""The DV700 as a target plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bmcompiler.backends.dv.pipeline import PIPELINE
from bmcompiler.errors import UsageError
from bmcompiler.ir import Module
from bmcompiler.spelling import spelled
from bmcompiler.target import Compiled, Kernel, Target

CHIP_NAME = "DV700"
"""As model files say it."""


class DvTarget(Target):
    """fp16, ops fused into runs, runs into commands; what has no kernel runs on the host CPU of the model, in float32.

    int8 is about weights only: bytes and a table of 256 fp16 numbers per layer. All arithmetic stays fp16.
    """

    name = "dv700"
    precisions: Sequence[str] = ("f16", "int8")
    exact_sums = True
    rounds_floats = True
    schemes: Sequence[str] = ()
    passes = PIPELINE

    def kinds(self) -> Sequence[type[Kernel[Any]]]:
        from bmcompiler.backends.dv.kernels import KINDS

        return KINDS

    def need_precision(self, precision: str) -> None:
        if precision not in self.precisions:
            remedy = f"use {spelled('quantize', 'f16')}, or int8 for weights of 8 bits"
            raise UsageError(f"{self.name} computes in f16, not in {precision}", remedy=remedy)

    def compile(self, modules: Sequence[Module], level: int) -> Compiled:
        from bmcompiler.backends.dv.lowering.codegen import DvProgram
        from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet
        from bmcompiler.codegen.program import compile_programs
        from bmcompiler.codegen.rows import memory_totals

        programs, compiled = compile_programs(modules, lambda module, pool: DvProgram(module, self, pool, level))
        first = programs[0]
        compiled.totals = {
            **memory_totals(first.plan),
            "device memory": first.map_bytes,
            "weight memory": first.coefficients.size,
            "kept in unified buffer": sum(
                row.outputs for row in first.rows if row.where == self.name and not row.stored
            ),
            "commands": first.build.count,
        }
        stages = [program.stage() for program in programs]
        compiled.model = Bm168xModel([Bm168xNet(modules[0].main.name, stages)], chip=CHIP_NAME)
        return compiled

    def describe(self, model: Any) -> list[str]:
        """What the commands of each program are, in a line."""
        from bmcompiler.backends.dv.listing import overview

        return overview(model)

    def disassemble(self, model: Any, net: int | None = None) -> str:
        from bmcompiler.backends.dv.listing import listing

        return listing(model, net)


TARGET = DvTarget()
