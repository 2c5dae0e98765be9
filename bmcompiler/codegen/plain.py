"""Code generation for chips with two engines whose programs go into a plain model file (`bmcompiler.bmodel.plain`).

Commands of both engines stand in one stream (`isa.split_stream`), in an order in which they may run. Each has the
fields `engine`, `op`, `id` (1, 2, ... per engine) and `wait`, the id of the other engine that must be done, 0 = none;
ids start again after a CPU subnet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from bmcompiler.bmodel.layers import decode_layers, encode_layers, titled
from bmcompiler.bmodel.model import Buffer
from bmcompiler.bmodel.plain import Part, PlainModel, PlainProgram
from bmcompiler.chip import Dims
from bmcompiler.codegen.build import BaseBuild, Box, dense_strides, extents, start_of
from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.codegen.hazards import Range, WaitIds
from bmcompiler.codegen.memory import MemoryPlan
from bmcompiler.codegen.partition import Segment
from bmcompiler.codegen.program import Program, compile_programs, tensor_info
from bmcompiler.codegen.rows import memory_totals
from bmcompiler.errors import EncodingError, FileFormatError
from bmcompiler.instructions.assembly import Syntax
from bmcompiler.instructions.isa import Format, stream_commands
from bmcompiler.ir import Module, Value
from bmcompiler.target import Compiled


class PlainBuild(BaseBuild):
    """Parts of a program; `serial` makes every command wait for all before it. `count` records so far."""

    formats: Mapping[int, Format]
    """By engine number, 0 and 1."""

    def __init__(self, plan: MemoryPlan, coefficients: Coefficients, serial: bool = False) -> None:
        super().__init__(plan, coefficients, not serial)
        self.serial, self.count = serial, 0
        self._parts: list[Part] = []
        self._start()

    def _start(self) -> None:
        self._commands: list[bytes] = []
        self._ids = WaitIds(self.serial)

    def add(self, engine: int, reads: Sequence[Range], writes: Sequence[Range], fields: Mapping[str, int]) -> None:
        """A command, and the bytes that it reads and writes where both engines reach. Raises EncodingError."""
        own, wait = self._ids.issue(engine, reads, writes)
        self._commands.append(self.formats[engine].pack({"engine": engine, "id": own, "wait": wait, **fields}))
        self.count += 1

    def load(self, start: int, constant: bool, shape: Dims, strides: Dims, address: int) -> None:
        """The chip's: a strided tensor of bytes of neuron memory, or of the coefficients, to local memory."""
        raise TypeError(f"{type(self).__name__} loads nothing")

    def store(self, start: int, shape: Dims, strides: Dims, address: int) -> None:
        """The chip's: the way back, to neuron memory."""
        raise TypeError(f"{type(self).__name__} stores nothing")

    def load_box(self, value: Value, view: Dims, box: Box, address: int) -> None:
        """The box of a value of bytes, seen as `view`, to local memory."""
        offset, constant = self.stored(value)
        self.load(offset + start_of(box, view), constant, extents(box), dense_strides(view), address)

    def store_box(self, value: Value, view: Dims, box: Box, address: int) -> None:
        """The way back of `load_box`."""
        self.store(self.neuron(value) + start_of(box, view), extents(box), dense_strides(view), address)

    def call(self, parameters: bytes) -> None:
        """Let the host run a CPU subnet."""
        self._parts = [*self.parts(), Part(False, parameters)]
        self._start()
        self.count += 1

    def parts(self) -> list[Part]:
        """The program so far."""
        return [*self._parts, *([Part(True, b"".join(self._commands))] if self._commands else [])]


B = TypeVar("B", bound=PlainBuild)


class PlainCode(Program[B]):
    """Code generation into a plain program."""

    def counts(self) -> tuple[int]:
        return (self.build.count,)

    def call_cpu(self, segment: Segment, parameters: bytes) -> None:
        self.build.call(parameters)

    def program(self, weight_index: int) -> PlainProgram:
        """The program; its weights are part `weight_index` of the model."""
        inputs, outputs = self.input_tensors(tensor_info), self.output_tensors(tensor_info)
        layers = encode_layers(self.spans[0])
        return PlainProgram(inputs, outputs, self.plan.size, self.build.parts(), weight_index, layers)


def compile_plain(
    modules: Sequence[Module],
    model: type[PlainModel],
    make: Callable[[Module, Coefficients], PlainCode[B]],
) -> Compiled:
    """One program per module (input shape); `make` is the code generator of the chip."""
    programs, compiled = compile_programs(modules, make)
    parts = [program.program(0) for program in programs]
    first = programs[0]
    totals = {"weight memory": first.coefficients.size, "commands": first.build.count}
    compiled.totals = {**memory_totals(first.plan), **totals}
    compiled.model = model(modules[0].main.name, parts, [first.coefficients.blob()])
    return compiled


def plain_listing(model: PlainModel, syntaxes: Mapping[int, Syntax]) -> str:
    """All programs as text: a line per command or CPU subnet, layers as comments. Raises FileFormatError."""
    return "".join(
        line for number, one in enumerate(model.programs) for line in [f"# program {number}\n", *_lines(one, syntaxes)]
    )


def _lines(program: PlainProgram, syntaxes: Mapping[int, Syntax]) -> list[str]:
    lines: list[str] = []
    for part in program.parts:
        lines += _commands(part.data, syntaxes) if part.device else [f"# host subnet, {len(part.data)} bytes\n"]
    numbered = (line if line.startswith("#") else f"{number}: {line}" for number, line in enumerate(lines))
    return titled(list(numbered), decode_layers(program.layers, len(lines)))


def _commands(data: Buffer, syntaxes: Mapping[int, Syntax]) -> Iterator[str]:
    formats = {number: syntax.layout for number, syntax in syntaxes.items()}
    try:
        yield from (f"{syntaxes[number].line(fields)}\n" for number, fields in stream_commands(data, formats))
    except EncodingError as error:
        raise FileFormatError(error.reason) from error
