"""The BM1880 as a target plugin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bmcompiler.errors import UsageError
from bmcompiler.ir import Function, Module
from bmcompiler.target import Compiled, Kernel, LayerGroup, Target, group_layers

if TYPE_CHECKING:
    from bmcompiler.bmnet.inst import TensorInst
    from bmcompiler.bmodel.bm1880 import Command


class Bm1880Target(Target):
    """int8 with power-of-two scales; everything else runs on the host CPU inside the same model."""

    name = "bm1880"
    precisions: Sequence[str] = ("int8",)

    def kernels(self) -> Sequence[Kernel]:
        """All kernels, in the order of the manual."""
        from bmcompiler.backends.bm1880.kernels import KERNELS

        return KERNELS

    @property
    def custom_inst(self) -> type[TensorInst]:
        """Base class of instruction classes of custom layers."""
        from bmcompiler.backends.bm1880.custom import CustomizedTensorFixedInst

        return CustomizedTensorFixedInst

    def layer_groups(self, function: Function, level: int) -> list[LayerGroup]:
        """The groups of ops that are computed slice by slice."""
        from bmcompiler.backends.bm1880.codegen import Bm1880Program

        return Bm1880Program.layer_groups(function, self, level)

    def pipeline(self, precision: str, level: int) -> str:
        """Default passes. Raises UsageError for a precision the chip does not have."""
        if precision not in self.precisions:
            raise UsageError(f"bm1880 computes in int8 only, not in {precision}", remedy="use --quantize int8")
        before = "single-precision,absorb-qdq,canonicalize,narrow-borders,legalize,merge-reshapes"
        return f"{before},calibrate,quantize,dead-code{group_layers(level)}"

    def compile(self, modules: Sequence[Module], level: int) -> Compiled:
        """One command per module (input shape); modules share one weight set where their weights agree."""
        from bmcompiler.backends.bm1880.codegen import Bm1880Program
        from bmcompiler.bmodel.bm1880 import Bm1880Model
        from bmcompiler.codegen.program import compile_programs, weight_sets
        from bmcompiler.codegen.rows import memory_totals

        programs, compiled = compile_programs(modules, lambda module, pool: Bm1880Program(module, self, pool, level))
        weights, used = weight_sets(programs)
        commands = [replace(program.command(), weight_index=index) for program, index in zip(programs, used)]
        compiled.totals = {
            **memory_totals(programs[0].plan),
            "weight memory": programs[0].coefficients.size,
            "command bytes": len(commands[0].cmdbuf),
        }
        compiled.model = Bm1880Model(modules[0].main.name, commands, weights, producer="bmcompiler")
        return compiled

    def disassemble(self, model: Any, net: int | None = None) -> str:
        """All programs (or one) of a model as text, layer names as comments."""
        chosen = list(enumerate(model.commands)) if net is None else [(net, model.commands[net])]
        return "\n".join(f"// program {index}\n{_listing(command)}" for index, command in chosen)


def _listing(command: Command) -> str:
    from bmcompiler.backends.bm1880.asm import disassemble
    from bmcompiler.bmodel.layers import decode_layers, titled

    lines = disassemble(command.cmdbuf).splitlines(keepends=True)
    return "".join(titled(lines, decode_layers(command.layers, len(lines))))


TARGET = Bm1880Target()
