"""The target: which ops the chip runs, which passes come first, and how a net becomes a model."""

from collections.abc import Sequence
from typing import Any

from bmcompiler.codegen.plain import PlainCode, compile_plain, plain_listing
from bmcompiler.codegen.program import flat_pieces
from bmcompiler.ir import Module, Value
from bmcompiler.pipelines import IMPORT, SIMPLIFY, PassRow, Phase, PipelineTable, support
from bmcompiler.target import Compiled, Kernel, Target
from toy_chip.build import Build
from toy_chip.container import ToyModel
from toy_chip.isa import SYNTAX
from toy_chip.kernels import KINDS


class Code(PlainCode[Build]):
    """Code generation of one net."""

    def start(self, level: int) -> Build:
        return Build(self.plan, self.coefficients, serial=level == 0)

    def copy_output(self, value: Value, offset: int) -> None:
        for start, rows, row in flat_pieces(value.type.nbytes, row=4096, rows=4096):
            self.build.copy(value, start, (1, 1, rows, row), offset + start)


class ToyTarget(Target):
    """int8 with power-of-two scales."""

    name = "toy"
    precisions: Sequence[str] = ("int8",)
    passes = PipelineTable(
        IMPORT,
        SIMPLIFY,
        support("legalize"),
        Phase(
            "precision",
            PassRow("calibrate", "all tensors that quantize meets exist"),
            PassRow("quantize", "layers are whole, nothing is laid out"),
            PassRow("dead-code", "weights of floats are read no more"),
        ),
    )

    def kinds(self) -> Sequence[type[Kernel[Any]]]:
        return KINDS

    def compile(self, modules: Sequence[Module], level: int) -> Compiled:
        return compile_plain(modules, ToyModel, lambda module, constants: Code(module, self, constants, level))

    def disassemble(self, model: Any, net: int | None = None) -> str:
        return plain_listing(model if net is None else model.select(net), SYNTAX)


TARGET = ToyTarget()
