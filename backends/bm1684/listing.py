"""Models as text: stages, subnets and their commands in the order they run, layer names and CPU subnets as comments.

`asm.assemble` reads a listing back: its groups are those of all stages, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from bmcompiler.backends.bm1684.asm import GROUP, line_of
from bmcompiler.backends.bm1684.builder import CommandGroup
from bmcompiler.backends.bm1684.isa import COMMAND_BYTES, FORMATS, ID_FIELDS, Engine
from bmcompiler.bmodel.bm168x import Bm168xModel, Bm168xNet, Bm168xStage, Bm168xTensor, CpuSubnet, TpuSubnet
from bmcompiler.bmodel.layers import LayerSpan, decode_layers, span_of
from bmcompiler.codegen.cpu_segment import decode_segment
from bmcompiler.errors import BMError, FileFormatError
from bmcompiler.instructions.order import queue_of, runnable


def listing(model: Bm168xModel, net: int | None = None) -> str:
    """All programs of a model as text, or program number `net` alone.

    Raises:
        UsageError: there is no such program.
        FileFormatError: commands or a list of layers that cannot be decoded.
    """
    chosen = model if net is None else model.select(net)
    lines = (line for number, (owner, stage) in enumerate(chosen.all_stages()) for line in _stage(number, owner, stage))
    return "".join(f"{line}\n" for line in lines)


def _stage(number: int, net: Bm168xNet, stage: Bm168xStage) -> Iterator[str]:
    # repr: names come from model files and may hold line breaks or terminal controls
    yield f"# program {number}: net {net.name!r}"
    end = stage.coeff_address + len(stage.coefficients)
    yield f"# coefficients 0x{stage.coeff_address:x} to 0x{end:x}"
    yield f"# neuron memory 0x{stage.ctx_address:x} to 0x{stage.ctx_address + stage.ctx_size:x}"
    yield from _tensors("input", stage.inputs)
    yield from _tensors("output", stage.outputs)
    commands = _Commands(spans_of(stage))
    for subnet in stage.subnets:
        following = ", ".join(map(str, subnet.next))
        yield f"# subnet {subnet.id}: {_kind(subnet)}, next {following}"
        if isinstance(subnet, CpuSubnet):
            yield from (f"#   {line}" for line in _host_text(subnet))
        else:
            for group in subnet.groups:
                yield GROUP
                yield from commands.group(group)


def _tensors(kind: str, tensors: list[Bm168xTensor]) -> Iterator[str]:
    for tensor in tensors:
        shape = "x".join(map(str, tensor.shape))
        yield f"# {kind} {tensor.name!r}: {shape} {tensor.dtype} at 0x{tensor.address:x}, {tensor.size} bytes"


def _kind(subnet: TpuSubnet | CpuSubnet) -> str:
    if isinstance(subnet, CpuSubnet):
        return f"{'custom ' if subnet.custom else ''}host layer {subnet.op_type}"
    if subnet.dynamic:
        return f"commands made at run time from {subnet.ir_length} bytes of intermediate code"
    return f"{len(subnet.groups)} command group{'' if len(subnet.groups) == 1 else 's'}"


def _host_text(subnet: CpuSubnet) -> list[str]:
    """The IR of our own subnets; of others the number of bytes."""
    try:
        text = str(decode_segment(bytes(subnet.parameters)))
    except BMError:  # another compiler's parameters: nothing is known about their form
        return [f"{len(subnet.parameters)} bytes of parameters"]
    return [line if line.isprintable() else ascii(line) for line in text.splitlines()]


class _Commands:
    """The lines of groups; commands are numbered through the stage, in the order they run."""

    def __init__(self, spans: Spans) -> None:
        self._numbers, self._spans = count(), spans
        self._first = {engine: 0 for engine in Engine}
        self._title = ""

    def group(self, group: CommandGroup) -> Iterator[str]:
        self._title = ""
        fields = {engine: _decode(engine, group[engine]) for engine in Engine}
        order = runnable({engine: queue_of(ID_FIELDS[engine], commands) for engine, commands in fields.items()})
        yield from self._run(fields, order)
        started = {engine: sum(one is engine for one, _ in order) for engine in Engine}
        stuck = [(engine, at) for engine in Engine for at in range(started[engine], len(fields[engine]))]
        if stuck:
            yield "# the rest never starts: it waits for ids that do not come"
            yield from self._run(fields, stuck)
        for engine in Engine:
            self._first[engine] += len(fields[engine])

    def _run(self, fields: dict[Engine, list[dict[str, int]]], order: list[tuple[Engine, int]]) -> Iterator[str]:
        for engine, at in order:
            title = self._title_of(engine, self._first[engine] + at)
            if title != self._title:
                self._title = title
                yield title
            yield f"{next(self._numbers)}: {line_of(engine, fields[engine][at])}"

    def _title_of(self, engine: Engine, number: int) -> str:
        if not any(self._spans.values()):
            return ""
        span = span_of(self._spans[engine], number)
        if span < 0:
            return "# (no layer)"
        return f"# {self._spans[engine][span].name!r} ({self._spans[engine][span].kind!r})"


def _decode(engine: Engine, data: bytes) -> list[dict[str, int]]:
    if len(data) % COMMAND_BYTES:
        raise FileFormatError(f"{len(data)} bytes are not whole {engine.name} commands of {COMMAND_BYTES} bytes")
    return [FORMATS[engine].unpack(data[at : at + COMMAND_BYTES]) for at in range(0, len(data), COMMAND_BYTES)]


Spans = dict[Engine, list[LayerSpan]]


def command_counts(stage: Bm168xStage) -> dict[Engine, int]:
    """Commands of each engine in all subnets."""
    return {engine: sum(len(group[engine]) // COMMAND_BYTES for group in stage.groups) for engine in Engine}


def spans_of(stage: Bm168xStage) -> Spans:
    """The layers of each engine's commands, which count from 0; models of other compilers have none.

    Raises:
        FileFormatError: a note that does not fit the commands.
    """
    counts = command_counts(stage)
    start = counts[Engine.TIU]
    try:
        text = bytes(stage.layers).decode()
    except UnicodeDecodeError as error:
        raise FileFormatError("the list of layers in the model is not text") from error
    found: Spans = {engine: [] for engine in Engine}
    for span in decode_layers(text, sum(counts.values())):
        if span.first >= start:
            found[Engine.GDMA].append(LayerSpan(span.name, span.kind, span.first - start, span.count))
        elif span.first + span.count <= start:
            found[Engine.TIU].append(span)
        else:
            raise FileFormatError(f"layer '{span.name}' is said to own commands across the end of the TIU's {start}")
    return found
