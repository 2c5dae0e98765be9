"""Why the commands of a program pass results on through device memory: told from the commands alone.

A result stays in the unified buffer when the run that alone reads it follows in the same command. Where a command ends,
this says what stands against that, in the order: who reads the result, then the limits of the longer command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bmcompiler.backends.dv.checks import limits, structure
from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.commands import ConvCommand, FcCommand
from bmcompiler.backends.dv.geometry import chain, strides_are_zero
from bmcompiler.backends.dv.structs import MAX_RUNS, OutputMode

Command = ConvCommand | FcCommand
Span = tuple[int, int, int]
"""Memory, first byte, end."""


def breaks(commands: Sequence[Command | None]) -> list[str]:
    """A sentence per command of a device subnet; "" where there is nothing to say. None = a command of another kind."""
    spans = [None if command is None else _written(command) for command in commands]
    return [_why(index, commands, spans) for index in range(len(commands))]


def _why(index: int, commands: Sequence[Command | None], spans: Sequence[Span | None]) -> str:
    command, span = commands[index], spans[index]
    if not isinstance(command, ConvCommand) or span is None:
        return ""
    readers = list(_readers(index, commands, spans))
    if not readers:
        return "the host reads the result"
    if len(readers) > 1:
        return f"{len(readers)} commands read the result"
    (reader,) = readers
    if isinstance(reader, FcCommand):
        return "an FC command reads the result"
    if _adds(reader, span):
        return "a command adds the result, from device memory"
    if reader.input_buf != command.output_buf or len(list(_chains(command))) > 1:
        return "the result is a part of what is read"
    return _limit(command, reader)


def _limit(command: ConvCommand, reader: ConvCommand) -> str:
    """What the driver says of both commands as one."""
    if command.output_mode == OutputMode.ADD:
        return "an addition writes device memory and ends its command"
    if len(command.runs) + len(reader.runs) > MAX_RUNS:
        return f"a command has {MAX_RUNS} runs"
    if len(list(_chains(reader))) > 1:
        return "several runs read the result"
    count = len(command.runs)
    both = ConvCommand(command.w, command.h, command.c, (*command.runs, *reader.runs), reader.topo << count)
    refused = limits(both, CHIP)
    return "" if refused is None else refused.text


def _chains(command: ConvCommand) -> Iterator[int]:
    return (index for index in range(len(command.runs)) if command.writes_external(index))


def _readers(index: int, commands: Sequence[Command | None], spans: Sequence[Span | None]) -> Iterator[Command]:
    """The commands that read what a command has written, until another one writes there."""
    span = spans[index]
    assert span is not None
    for command, written in zip(commands[index + 1 :], spans[index + 1 :]):
        if command is None:
            return
        if _overlap(_inputs(command), span) or _adds(command, span):
            yield command
        if written is not None and _overlap(written, span):
            return


def _inputs(command: Command) -> Span:
    size = command.input_size if isinstance(command, FcCommand) else command.w * command.h * command.z * command.c
    return command.input_buf.mem, command.input_buf.offs, command.input_buf.offs + 2 * size


def _written(command: Command) -> Span | None:
    buf = command.output_buf
    if isinstance(command, FcCommand):
        return buf.mem, buf.offs, buf.offs + 2 * command.output_size
    if any(strides_are_zero(run, True) for run in command.runs) or next(structure(command, CHIP), None):
        return None
    size = sum(link.out.bytes for link in chain(command) if link.external)
    return buf.mem, buf.offs, buf.offs + size


def _adds(command: Command, span: Span) -> bool:
    if not isinstance(command, ConvCommand) or command.output_mode != OutputMode.ADD:
        return False
    buf = command.eltwise_buf
    return buf.mem == span[0] and span[1] <= buf.offs < span[2]


def _overlap(first: Span, second: Span) -> bool:
    return first[0] == second[0] and first[1] < second[2] and second[1] < first[2]
