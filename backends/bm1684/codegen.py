"""IR to a stage of a BM1684 model: memory plan, subnets of commands, coefficients, summary rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from bmcompiler.backends.bm1684.build import NEURON_VIRTUAL, Build, place_neurons
from bmcompiler.backends.bm1684.builder import CommandGroup
from bmcompiler.backends.bm1684.chip import CHIP, align_up
from bmcompiler.backends.bm1684.isa import Engine
from bmcompiler.backends.bm1684.kernels import TABLE
from bmcompiler.bmodel.bm1684 import Bm1684Stage, Bm1684Tensor, CpuSubnet, TpuSubnet
from bmcompiler.bmodel.layers import LayerSpan, encode_layers
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.cpu_segment import encode_segment
from bmcompiler.codegen.kernels import DeviceKernel
from bmcompiler.codegen.memory import is_weight, parts_of_others, plan_memory, root_of
from bmcompiler.codegen.partition import Segment, partition
from bmcompiler.codegen.rows import cpu_rows, device_row
from bmcompiler.errors import BMError, UnsupportedError
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import LayerRow, Target

NEURON_ALIGN = 64
PAGE = 4096
NAMED = ("f32", "f16", "i8", "u8", "i16", "u16", "i32", "u32")
"""Element types of the container (bm1684.md 10.2)."""
CPU_LAYER = 3
"""Number of our CPU subnets among the vendor's CPU layers, "user defined": its disassembler reads no unknown ones."""


@dataclass
class _Spans:
    """Which commands of one engine belong to which layer."""

    spans: list[LayerSpan] = field(default_factory=list)

    def add(self, name: str, kind: str, first: int, end: int) -> None:
        if end > first:
            self.spans.append(LayerSpan(name, kind, first, end - first))


class Program:
    """Code generation of one function; `stage` and `rows` are its results.

    Level 0 makes the plainest program: every command waits for all before it. Level 1 moves data while the TIU
    computes. Level 2 also spares the copies of splits and concatenations whose parts are runs of the whole.
    """

    def __init__(self, module: Module, target: Target, coefficients: Coefficients, level: int = 2) -> None:
        self.module, self.function, self.coefficients = module, module.main, coefficients
        self.segments = partition(self.function, target)
        steps = [step for segment in self.segments for step in segment.steps()]
        hidden = {value for segment in self.segments for value in segment.hidden()}
        on_device = [op for segment in self.segments if segment.device for op in segment.ops]
        hosts = parts_of_others(self.function, on_device) if level > 1 else {}
        self.plan = plan_memory(self.function, steps, NEURON_ALIGN, hosts, hidden)
        self.build = Build(self.plan, coefficients, serial=level == 0)
        self.rows: list[LayerRow] = []
        self._spans = {engine: _Spans() for engine in Engine}
        self._names = self._value_names()
        self._subnets: list[TpuSubnet | CpuSubnet] = []
        for segment in self.segments:
            if segment.device:
                self._emit_device(segment)
            else:
                self._emit_cpu(segment)
        self._copy_outputs()
        self.stage = self._stage()

    # -- segments ------------------------------------------------------------------------------------------------------
    def _emit_device(self, segment: Segment) -> None:
        for op in segment.ops:
            assert isinstance(op, TensorOp)
            kernel = TABLE[type(op)]
            assert isinstance(kernel, DeviceKernel)
            before = dict(self.build.counts)
            try:
                moved = kernel.emit(op, self.build)
            except BMError as error:
                raise error.located(layer=op.label, kind=op.short_name) from None
            self._name_commands(op.label, op.short_name, before)
            commands = sum(self.build.counts.values()) - sum(before.values())
            self.rows.append(device_row(op, "bm1684", moved, commands))
        self._close_subnet(*_borders(segment))

    def _emit_cpu(self, segment: Segment) -> None:
        def weight_offset(value: Value) -> int:
            return self.coefficients.place(value, "plain", lambda w: w)

        def neuron_offset(value: Value) -> int:
            return self.build.neuron(value) - NEURON_VIRTUAL

        parameters = encode_segment(segment, f"cpu{len(self._subnets)}", neuron_offset, weight_offset)
        inputs, outputs = (list(map(self._tensor, values)) for values in _borders(segment))
        self._subnets.append(CpuSubnet(CPU_LAYER, parameters, inputs, outputs, id=len(self._subnets), custom=True))
        self.rows += cpu_rows(segment)

    def _copy_outputs(self) -> None:
        """Outputs that live elsewhere (an input, or an output listed twice) get their copy."""
        before = dict(self.build.counts)
        for value, offset in self.plan.copies:
            root = root_of(value)
            if root not in self.plan.offsets and not is_weight(root):
                raise UnsupportedError("an output of the net has no memory", remedy="leave it out with --outputs")
            for start, dims in _flat_pieces(value.type.nbytes):
                target, source = NEURON_VIRTUAL + offset + start, self.build.source(value) + start
                self.build.copy_global(
                    target, source, 1, dims, (0, dims[2] * dims[3], dims[3], 1), (0, dims[2] * dims[3], dims[3], 1)
                )
        self._name_commands("outputs", "copy", before)
        if self.plan.copies:
            values = [value for value, _ in self.plan.copies]
            self._close_subnet(values, values)

    def _close_subnet(self, inputs: list[Value], outputs: list[Value]) -> None:
        groups = self.build.finish()
        if groups:
            read, written = list(map(self._tensor, inputs)), list(map(self._tensor, outputs))
            self._subnets.append(TpuSubnet(groups, read, written, id=len(self._subnets)))

    def _name_commands(self, layer: str, kind: str, before: dict[Engine, int]) -> None:
        for engine in Engine:
            self._spans[engine].add(layer, kind, before[engine], self.build.counts[engine])

    # -- the stage -----------------------------------------------------------------------------------------------------
    def _stage(self) -> Bm1684Stage:
        self._ctx = align_up(CHIP.program_base + self.coefficients.size, PAGE)
        for number, subnet in enumerate(self._subnets):
            subnet.next = [number + 1 if number + 1 < len(self._subnets) else -1]
            for tensor in (*subnet.inputs, *subnet.outputs):
                tensor.address += self._ctx
            if isinstance(subnet, TpuSubnet):
                subnet.groups = [CommandGroup(tiu, place_neurons(gdma, self._ctx)) for tiu, gdma in subnet.groups]
        function = self.function
        inputs = [
            tensor_info(name, value.type, self._ctx + self.plan.offsets[value])
            for name, value in zip(function.input_names, function.arguments)
        ]
        outputs = [
            tensor_info(name, value.type, self._ctx + offset)
            for name, value, offset in zip(function.output_names, function.returned, self.plan.outputs)
        ]
        return Bm1684Stage(
            inputs,
            outputs,
            self._ctx,
            self.plan.size,
            self._subnets,
            coefficients=self.coefficients.blob(),
            layers=self._layers().encode(),
        )

    def _layers(self) -> str:
        """Commands are counted over the whole stage: first those of the TIU, then those of the GDMA."""
        shift = self.build.counts[Engine.TIU]
        moved = [LayerSpan(s.name, s.kind, s.first + shift, s.count) for s in self._spans[Engine.GDMA].spans]
        return encode_layers([*self._spans[Engine.TIU].spans, *moved])

    def _tensor(self, value: Value) -> Bm1684Tensor:
        """A tensor at the border of a subnet, as bytes where the container has no name for its type.

        `_stage` moves its address.
        """
        type = value.type if value.dtype in NAMED else TensorType((*value.shape, value.type.numpy.itemsize), "u8")
        return tensor_info(self._names[value], type, self.plan.offsets.get(root_of(value), 0))

    def _value_names(self) -> dict[Value, str]:
        """Source names of inputs and outputs, layer names of all others."""
        function = self.function
        names = dict(zip(function.arguments, function.input_names))
        for op in function.ops:
            names.update((value, f"{op.label}:{i}" if i else op.label) for i, value in enumerate(op.results))
        names.update(zip(function.returned, function.output_names))
        return names


def _borders(segment: Segment) -> tuple[list[Value], list[Value]]:
    """(values that a segment reads from outside, values that are read outside)."""
    inside = {result for op in segment.ops for result in op.results}
    read = dict.fromkeys(value for op in segment.ops for value in op.operands)
    inputs = [value for value in read if root_of(value) not in inside and not is_weight(root_of(value))]
    return inputs, segment.outputs()


def _flat_pieces(size: int) -> list[tuple[int, tuple[int, int, int, int]]]:
    """(offset, shape) of copies that cover `size` bytes."""
    row = 1 << 14
    pieces = []
    start = 0
    while start < size:
        rows = min((size - start) // row, row)
        dims = (1, 1, rows, row) if rows else (1, 1, 1, size - start)
        pieces.append((start, dims))
        start += dims[2] * dims[3]
    return pieces


def tensor_info(name: str, type: TensorType, address: int) -> Bm1684Tensor:
    """Container entry of a tensor. Raises UnsupportedError for element types the container cannot name."""
    if type.dtype not in NAMED:
        raise UnsupportedError(
            f"'{name}' has element type {type.dtype}, which a bm1684 model cannot hold",
            remedy=f"cast it to one of {', '.join(NAMED)}",
        )
    scale, zero = (1.0, 0) if type.quant is None else (type.quant.scale, type.quant.zero_point)
    return Bm1684Tensor(name, str(type.numpy), type.shape or (1,), address, scale=scale, zero_point=zero)
