"""Models as text: stages, subnets and their commands in the order they run, layer names and CPU subnets as comments.

An assembler reads a listing back: its groups are those of all stages, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

from bmcompiler.bmodel import bm168x_streams
from bmcompiler.bmodel.bm168x import (
    Bm168xModel,
    Bm168xNet,
    Bm168xStage,
    Bm168xTensor,
    CommandGroup,
    CpuSubnet,
    TpuSubnet,
)
from bmcompiler.bmodel.bm168x_kernels import HAU_BYTES, KernelGroup
from bmcompiler.bmodel.layers import LayerSpan, decode_layers, span_of
from bmcompiler.codegen.cpu_segment import decode_segment
from bmcompiler.errors import BMError, FileFormatError
from bmcompiler.instructions.assembly import assignments, at_line, source_lines
from bmcompiler.instructions.order import STREAMS, Engine, Ids, Poll, Polled, runnable

GROUP = "group"
"""The line before each group of commands."""
_POLL = "poll"


class StreamText(NamedTuple):
    """Ids and text of every command of a stream, and the text of what follows them ("" = nothing)."""

    commands: list[tuple[Ids, str]]
    tail: str = ""


StreamWriter = Callable[[Engine, bytes], StreamText]
"""Writes the commands of a stream. Raises FileFormatError or EncodingError for bytes that are none."""


@dataclass(frozen=True)
class Assembler:
    """Commands of a chip as text and back.

    Attributes:
        write: how its commands are written.
        read: engine and bytes of the words of a line. Raises FileFormatError, EncodingError.
    """

    write: StreamWriter
    read: Callable[[list[str]], tuple[Engine, bytes]]

    def listing(self, model: Bm168xModel, net: int | None = None) -> str:
        """All programs of a model as text, or program number `net` alone.

        Raises:
            UsageError: there is no such program.
            FileFormatError: commands or a list of layers that cannot be decoded.
        """
        chosen = model if net is None else model.select(net)
        stages = enumerate(chosen.all_stages())
        return _text(
            line for number, (owner, stage) in stages for line in _stage(chosen.chip, number, owner, stage, self.write)
        )

    def disassemble(self, groups: Sequence[CommandGroup]) -> str:
        """Command groups as text. Raises FileFormatError, EncodingError for bytes that are not whole commands."""
        lines: list[str] = []
        for group in groups:
            lines.append(GROUP)
            streams = [*zip(STREAMS, group), *((Engine.HAU, data) for data in filter(None, [group.polled.hau]))]
            for engine, data in streams:
                found = self.write(engine, data)
                lines += (f"{index}: {line}" for index, (_, line) in enumerate(found.commands))
                lines += filter(None, [found.tail])
            lines += (
                f"{_POLL} engine={one.engine} tiu={one.tiu} gdma={one.gdma} hau={one.hau}" for one in group.polled.polls
            )
        return _text(lines)

    def assemble(self, text: str) -> list[CommandGroup]:
        """The groups of a text written by `disassemble` or by hand; without a `group` line they are one group.

        Raises:
            FileFormatError: a line that cannot be read; names the line.
            EncodingError: a value that does not fit its field; names the line.
        """
        groups: list[_Lines] = []
        for number, words in source_lines(text):
            if words == [GROUP] or not groups:
                groups.append(_Lines({engine: [] for engine in Engine}, []))
            if words != [GROUP]:
                with at_line(number):
                    groups[-1].take(words, self.read)
        return [group.joined() for group in groups]


class _Lines(NamedTuple):
    """What the lines of a group say: the commands of each engine, and polls."""

    commands: dict[Engine, list[bytes]]
    polls: list[Poll]

    def take(self, words: list[str], read: Callable[[list[str]], tuple[Engine, bytes]]) -> None:
        """Read a line. Raises FileFormatError, EncodingError."""
        if words[0] != _POLL:
            engine, data = read(words)
            self.commands[engine].append(data)
            return
        values, _ = assignments(words[1:])
        if set(values) != set(Poll._fields) or values["engine"] not in list(Engine):
            raise FileFormatError(f"'{_POLL}' needs {', '.join(Poll._fields)}")
        self.polls.append(Poll(Engine(values["engine"]), *(values[name] for name in Poll._fields[1:])))

    def joined(self) -> CommandGroup:
        """The group of these lines."""
        tiu, gdma, hau = (b"".join(self.commands[engine]) for engine in Engine)
        return KernelGroup(tiu, gdma, Polled(hau, tuple(self.polls))) if hau else CommandGroup(tiu, gdma)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _stage(chip: str, number: int, net: Bm168xNet, stage: Bm168xStage, write: StreamWriter) -> Iterator[str]:
    # repr: names come from model files and may hold line breaks or terminal controls
    yield f"# program {number}: net {net.name!r}"
    end = stage.coeff_address + len(stage.coefficients)
    yield f"# coefficients 0x{stage.coeff_address:x} to 0x{end:x}"
    yield f"# neuron memory 0x{stage.ctx_address:x} to 0x{stage.ctx_address + stage.ctx_size:x}"
    yield from _tensors("input", stage.inputs)
    yield from _tensors("output", stage.outputs)
    commands = _Commands(stage_spans(chip, stage), write)
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

    def __init__(self, spans: Spans, write: StreamWriter) -> None:
        self._numbers, self._spans, self._write = count(), spans, write
        self._first = {engine: 0 for engine in STREAMS}
        self._title = ""

    def group(self, group: CommandGroup) -> Iterator[str]:
        self._title = ""
        texts = {engine: self._write(engine, group[engine]) for engine in STREAMS}
        lines = {engine: text.commands for engine, text in texts.items()}
        order = runnable({engine: [ids for ids, _ in commands] for engine, commands in lines.items()})
        yield from self._run(lines, order)
        started = {engine: sum(one is engine for one, _ in order) for engine in STREAMS}
        stuck = [(engine, at) for engine in STREAMS for at in range(started[engine], len(lines[engine]))]
        if stuck:
            yield "# the rest never starts: it waits for ids that do not come"
            yield from self._run(lines, stuck)
        for engine in STREAMS:
            self._first[engine] += len(lines[engine])
            if texts[engine].tail:
                yield texts[engine].tail

    def _run(self, lines: dict[Engine, list[tuple[Ids, str]]], order: list[tuple[Engine, int]]) -> Iterator[str]:
        for engine, at in order:
            title = self._title_of(engine, self._first[engine] + at)
            if title != self._title:
                self._title = title
                yield title
            yield f"{next(self._numbers)}: {lines[engine][at][1]}"

    def _title_of(self, engine: Engine, number: int) -> str:
        if not any(self._spans.values()):
            return ""
        span = span_of(self._spans[engine], number)
        if span < 0:
            return "# (no layer)"
        return f"# {self._spans[engine][span].name!r} ({self._spans[engine][span].kind!r})"


Spans = dict[Engine, list[LayerSpan]]


def stage_spans(chip: str, stage: Bm168xStage) -> Spans:
    """The layers of each engine's commands, which count from 0; models of other compilers have none.

    Raises:
        FileFormatError: a note that does not fit the commands.
    """
    counts = {one: sum(bm168x_streams.count(chip, one, group[one]) for group in stage.groups) for one in STREAMS}
    start, end = counts[Engine.TIU], sum(counts.values())
    sorts = sum(len(group.polled.hau) // HAU_BYTES for group in stage.groups)
    try:
        text = bytes(stage.layers).decode()
    except UnicodeDecodeError as error:
        raise FileFormatError("the list of layers in the model is not text") from error
    found: Spans = {engine: [] for engine in Engine}
    for span in decode_layers(text, end + sorts):
        if span.first >= end:
            found[Engine.HAU].append(replace(span, first=span.first - end))
        elif span.first >= start:
            found[Engine.GDMA].append(replace(span, first=span.first - start))
        elif span.first + span.count <= start:
            found[Engine.TIU].append(span)
        else:
            raise FileFormatError(f"layer '{span.name}' is said to own commands across the end of the TIU's {start}")
    return found
