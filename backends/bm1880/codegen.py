"""IR to a BM1880 program: command buffer, coefficients, summary rows."""

from __future__ import annotations

from bmcompiler.backends.bm1880.bmkernel import bmk1880_acquire_cmdbuf
from bmcompiler.backends.bm1880.build import Build
from bmcompiler.backends.bm1880.chip import COPY_LIMITS
from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.bm1880 import Command
from bmcompiler.bmodel.layers import encode_layers
from bmcompiler.codegen.build import dense_strides
from bmcompiler.codegen.cpu_segment import CPU_FUNCTION
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.partition import Segment
from bmcompiler.codegen.program import Program
from bmcompiler.codegen.program import tensor_info as threshold_info
from bmcompiler.codegen.strided_copy import Dim, copy_commands
from bmcompiler.errors import UnsupportedError
from bmcompiler.ir import TensorType, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.spelling import spelled

NAMED = ("f32", "i8", "u8", "f16", "i32", "i16", "u16")
"""Element types of the container (bm1880.md 1)."""


class Bm1880Program(Program[Build]):
    """Code generation of one function; `command` is its result."""

    def start(self, level: int) -> Build:
        return Build(self.plan, self.coefficients, overlap=level > 0)

    def counts(self) -> tuple[int]:
        return (self.build.ctx.count,)

    def call_cpu(self, segment: Segment, parameters: bytes) -> None:
        self.build.cpu(CPU_FUNCTION, parameters)

    def copy_output(self, value: Value, offset: int) -> None:
        root = root_of(value)
        if is_weight(root):
            raise UnsupportedError(
                "an output of the net is a constant", remedy=f"leave it out with {spelled('outputs')}"
            )
        for part in copy_commands([Dim(value.type.nbytes, 1, 1)], COPY_LIMITS):
            n, c, h, w = part.shape
            strides = dense_strides((n, c, h, w))
            target, source = offset + part.dst, self.plan.offsets[root] + part.src
            self.build.copy_global(target, source, 1, part.shape, strides, strides)

    def command(self) -> Command:
        """The program as a part of the model file."""
        inputs, outputs = self.input_tensors(tensor_info), self.output_tensors(tensor_info)
        cmdbuf = bmk1880_acquire_cmdbuf(self.build.ctx)
        return Command(inputs, outputs, cmdbuf, self.plan.size, layers=encode_layers(self.spans[0]))


def tensor_info(name: str, type: TensorType, offset: int) -> TensorInfo:
    """Container entry of an input or output. Raises UnsupportedError for element types the container cannot name."""
    if type.dtype not in NAMED:
        raise UnsupportedError(
            f"'{name}' has element type {type.dtype}, which a bm1880 model cannot hold",
            remedy=f"cast it to one of {', '.join(NAMED)}",
        )
    return threshold_info(name, type, offset)
