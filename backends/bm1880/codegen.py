"""IR to a BM1880 program: memory plan, command buffer, coefficients, summary rows."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1880.bmkernel import bmk1880_acquire_cmdbuf, bmk1880_cpu_op
from bmcompiler.backends.bm1880.bmkernel.tensors import packed_strides
from bmcompiler.backends.bm1880.build import Build
from bmcompiler.backends.bm1880.chip import COPY_LIMITS
from bmcompiler.backends.bm1880.kernels import TABLE
from bmcompiler.backends.bm1880.kernels.base import DeviceKernel
from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.bm1880 import Command
from bmcompiler.bmodel.layers import LayerSpan, encode_layers
from bmcompiler.bmodel.model import FMT_F32, FMT_I8, FMT_U8
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.cpu_segment import CPU_FUNCTION, encode_segment
from bmcompiler.codegen.memory import parts_of_others, plan_memory, root_of
from bmcompiler.codegen.partition import Segment, partition
from bmcompiler.codegen.rows import cpu_rows, device_row, joined_names
from bmcompiler.codegen.strided_copy import Dim, copy_commands
from bmcompiler.errors import BMError, UnsupportedError
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import LayerRow, Target

_FORMATS = {"f32": FMT_F32, "i8": FMT_I8, "u8": FMT_U8, "f16": 1, "i32": 2, "i16": 3, "u16": 8}
_NEURON_ALIGN = 64


class Program:
    """Code generation of one function; `command` and `rows` are its results.

    Level 0 makes the plainest program: every command waits for the one before it. Level 1 moves data while the TPU
    computes. Level 2 also spares the copies of splits and concatenations whose parts are runs of bytes of the whole.
    """

    def __init__(self, module: Module, target: Target, coefficients: Coefficients, level: int = 2) -> None:
        self.module, self.function, self.coefficients = module, module.main, coefficients
        self.segments = partition(self.function, target)
        steps = [step for segment in self.segments for step in segment.steps()]
        hidden = {value for segment in self.segments for value in segment.hidden()}
        on_device = [op for segment in self.segments if segment.device for op in segment.ops]
        hosts = parts_of_others(self.function, on_device) if level > 1 else {}
        self.plan = plan_memory(self.function, steps, _NEURON_ALIGN, hosts, hidden)
        self.build = Build(self.plan, coefficients, overlap=level > 0)
        self.rows: list[LayerRow] = []
        self.layers: list[LayerSpan] = []
        for index, segment in enumerate(self.segments):
            if segment.device:
                self._emit_device(segment)
            else:
                self._emit_cpu(segment, index)
        self._copy_outputs()
        self.command = self._command()

    def _emit_device(self, segment: Segment) -> None:
        for op in segment.ops:
            assert isinstance(op, TensorOp)
            kernel = TABLE[type(op)]
            assert isinstance(kernel, DeviceKernel)
            before = self.build.ctx.count
            try:
                moved = kernel.emit(op, self.build)
            except BMError as error:
                raise error.located(layer=op.label, kind=op.short_name) from None
            self._name_records(op.label, op.short_name, before)
            self.rows.append(device_row(op, "bm1880", moved, self.build.ctx.count - before))

    def _emit_cpu(self, segment: Segment, index: int) -> None:
        def weight_offset(value: Value) -> int:
            return self.coefficients.place(value, "plain", lambda w: w)

        parameters = encode_segment(segment, f"cpu{index}", self.build.neuron, weight_offset)
        before = self.build.ctx.count
        bmk1880_cpu_op(self.build.ctx, CPU_FUNCTION, parameters)
        self._name_records(*joined_names(segment), before)
        self.rows += cpu_rows(segment)

    def _name_records(self, layer: str, kind: str, first: int) -> None:
        """Note that the records from `first` on belong to a layer."""
        if self.build.ctx.count > first:
            self.layers.append(LayerSpan(layer, kind, first, self.build.ctx.count - first))

    def _copy_outputs(self) -> None:
        first = self.build.ctx.count
        for value, offset in self.plan.copies:
            root = root_of(value)
            if root not in self.plan.offsets:
                raise UnsupportedError("an output of the net is a constant", remedy="leave it out with --outputs")
            size = value.type.nbytes
            for part in copy_commands([Dim(size, 1, 1)], COPY_LIMITS):
                n, c, h, w = part.shape
                strides = packed_strides((n, c, h, w))
                self.build.copy_global(
                    offset + part.dst, self.plan.offsets[root] + part.src, part.shape, strides, strides
                )
        self._name_records("outputs", "copy", first)

    def _command(self) -> Command:
        function, plan = self.function, self.plan
        inputs = [
            tensor_info(name, value.type, plan.offsets[value])
            for name, value in zip(function.input_names, function.arguments)
        ]
        outputs = [
            tensor_info(name, value.type, offset)
            for name, value, offset in zip(function.output_names, function.returned, plan.outputs)
        ]
        cmdbuf = bmk1880_acquire_cmdbuf(self.build.ctx)
        return Command(inputs, outputs, cmdbuf, plan.size, layers=encode_layers(self.layers))


def tensor_info(name: str, type: TensorType, offset: int) -> TensorInfo:
    """Container entry of an input or output. Raises UnsupportedError for element types the container cannot name."""
    fmt = _FORMATS.get(type.dtype)
    if fmt is None:
        raise UnsupportedError(
            f"'{name}' has element type {type.dtype}, which a bm1880 model cannot hold",
            remedy=f"cast it to one of {', '.join(_FORMATS)}",
        )
    threshold = float(np.float32(type.quant.threshold)) if type.quant is not None else 0.0
    return TensorInfo(name, type.shape or (1,), fmt, offset, threshold)
