"""IR to a stage of a BM168x model: subnets of commands, coefficients, summary rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bmcompiler.backends.bm168x.build import NEURON_VIRTUAL, FamilyBuild
from bmcompiler.bmodel.bm168x import (
    Bm168xModel,
    Bm168xNet,
    Bm168xStage,
    Bm168xTensor,
    CommandGroup,
    CpuSubnet,
    TpuSubnet,
)
from bmcompiler.bmodel.layers import encode_layers
from bmcompiler.chip import align_up
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.memory import MemoryPlan, root_of
from bmcompiler.codegen.partition import Segment
from bmcompiler.codegen.program import Program, borders, flat_pieces
from bmcompiler.errors import UnsupportedError
from bmcompiler.instructions.order import STREAMS, Engine
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.target import Target

PAGE = 4096
COPY_ROW = 1 << 14
"""Bytes of a row, and rows, of one copy of an output."""
NAMED = ("f32", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32")
"""Element types that inputs and outputs may have (bm1684.md 10.2)."""
CPU_LAYER = 3
"""Number of our CPU subnets among the vendor's CPU layers, "user defined": its disassembler reads no unknown ones."""


B = TypeVar("B", bound=FamilyBuild[Any])
"""The chip's instruction builder."""
NewBuild = Callable[[MemoryPlan, Coefficients, bool], B]
"""Makes one; the last argument: whether every command waits for all before it."""


class Bm168xProgram(Program[B]):
    """Code generation of one function by a chip's builder; `stage` is its result. Commands are counted per engine."""

    def __init__(
        self, builder: NewBuild[B], module: Module, target: Target, coefficients: Coefficients, level: int = 2
    ) -> None:
        self._builder = builder
        super().__init__(module, target, coefficients, level)

    def start(self, level: int) -> B:
        self._names = self._value_names()
        self._subnets: list[TpuSubnet | CpuSubnet] = []
        self._read: list[Value] = []
        self._written: list[Value] = []
        self._copied: list[Bm168xTensor] = []
        build = self._builder(self.plan, self.coefficients, level == 0)
        for segment in self.segments if level else ():
            if segment.device:
                build.expect(segment.ops)
        return build

    def counts(self) -> tuple[int, ...]:
        return tuple(self.build.counts[engine] for engine in STREAMS)

    def call_cpu(self, segment: Segment, parameters: bytes) -> None:
        self._close()
        inputs, outputs = (list(map(self._tensor, values)) for values in borders(segment))
        self._subnets.append(CpuSubnet(CPU_LAYER, parameters, inputs, outputs, id=len(self._subnets), custom=True))

    def copy_output(self, value: Value, offset: int) -> None:
        for start, rows, row in flat_pieces(value.type.nbytes, COPY_ROW, COPY_ROW):
            strides = (0, rows * row, row, 1)
            target, source = NEURON_VIRTUAL + offset + start, self.build.source(value) + start
            self.build.copy_global(target, source, 1, (1, 1, rows, row), strides, strides)
        name = self.function.output_names[self.plan.outputs.index(offset)]
        self._copied.append(tensor_info(name, value.type, offset))

    def end_of_device(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        self._read += inputs
        self._written += outputs
        self.build.end_of_run()

    def _close(self) -> None:
        """What the device has done since the last CPU subnet becomes one: the vendor's runtime runs no two in a row."""
        groups = self.build.finish()
        if groups:
            own = {root_of(value) for value in self._written}
            read = [value for value in self._read if root_of(value) not in own and not is_weight(root_of(value))]
            inputs, outputs = (list(map(self._tensor, dict.fromkeys(values))) for values in (read, self._written))
            self._subnets.append(TpuSubnet(groups, inputs, [*outputs, *self._copied], id=len(self._subnets)))
        self._read, self._written, self._copied = [], [], []

    # -- the stage -----------------------------------------------------------------------------------------------------
    def stage(self) -> Bm168xStage:
        """The program as a part of the model file."""
        self._close()
        first = self.build.first_address
        self._ctx = align_up(first + self.coefficients.size, PAGE)
        for number, subnet in enumerate(self._subnets):
            subnet.next = [number + 1 if number + 1 < len(self._subnets) else -1]
            for tensor in (*subnet.inputs, *subnet.outputs):
                tensor.address += self._ctx
            if isinstance(subnet, TpuSubnet):
                subnet.groups = [
                    CommandGroup(tiu, self.build.place_neurons(gdma, self._ctx)) for tiu, gdma in subnet.groups
                ]

        def place(name: str, type: TensorType, offset: int) -> Bm168xTensor:
            return tensor_info(name, type, self._ctx + offset)

        return Bm168xStage(
            self.input_tensors(place),
            self.output_tensors(place),
            self._ctx,
            self.plan.size,
            self._subnets,
            coeff_address=first,
            coefficients=self.coefficients.blob(),
            layers=self._layers().encode(),
        )

    def _layers(self) -> str:
        """Commands are counted over the whole stage: first those of the TIU, then those of the GDMA."""
        tiu, gdma = self.spans
        shift = self.build.counts[Engine.TIU]
        moved = [replace(span, first=span.first + shift) for span in gdma]
        return encode_layers([*tiu, *moved])

    def _tensor(self, value: Value) -> Bm168xTensor:
        """A tensor at the border of a subnet, as bytes where the container has no name for its type.

        `stage` moves its address.
        """
        type = value.type if value.dtype in NAMED else TensorType((*value.shape, value.type.numpy.itemsize), "u8")
        return tensor_info(self._names[value], type, self.plan.offsets.get(root_of(value), 0))

    def _value_names(self) -> dict[Value, str]:
        """Source names of inputs and outputs, layer names of all others."""
        function = self.function
        names = dict(zip(function.arguments, function.input_names))
        for op in function.ops:
            names.update((value, f"{op.label}:{i}" if i else op.label) for i, value in enumerate(op.results))
        given = set(function.arguments)
        names |= {v: name for v, name in zip(function.returned, function.output_names) if v not in given}
        return names


def tensor_info(name: str, type: TensorType, address: int) -> Bm168xTensor:
    """Container entry of a tensor. Raises UnsupportedError for element types the container cannot name."""
    if type.dtype not in NAMED:
        raise UnsupportedError(
            f"'{name}' has element type {type.dtype}, which a BM168x model cannot hold",
            remedy=f"cast it to one of {', '.join(NAMED)}",
        )
    scale, zero = (1.0, 0) if type.quant is None else (type.quant.scale, type.quant.zero_point)
    return Bm168xTensor(name, str(type.numpy), type.shape or (1,), address, scale=scale, zero_point=zero)


def one_net(name: str, programs: Sequence[Bm168xProgram[Any]], chip: str) -> Bm168xModel:
    """A model of one net with a stage per program, for a chip as model files say it."""
    return Bm168xModel([Bm168xNet(name, [program.stage() for program in programs])], chip=chip)
