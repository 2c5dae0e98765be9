"""Why the commands of a program pass results on through device memory: told from the commands alone.

A result stays in the unified buffer when the run that alone reads it follows in the same command. Where a command ends,
this says what stands against that, in the order: who reads the result, then the limits of the longer command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.checks import limits
from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, FcCommand
from bmcompiler.backends.dv.driver.geometry import Extent, chain
from bmcompiler.backends.dv.driver.structs import MAX_RUNS, OutputMode
from bmcompiler.numeric.arrays import Ints, Mask

Command = ConvCommand | FcCommand
Spans = Ints
"""Memory, first byte and end of a part of memory in the last axis; all 0 = none."""
_NONE = (0, 0, 0)
_LAST = 1 << 60


def breaks(commands: Sequence[Command | None]) -> list[str]:
    """A sentence per command of a device subnet; "" where there is nothing to say. None = a command of another kind."""
    written = np.array([_NONE if each is None else _written(each) for each in commands], np.int64).reshape(-1, 3)
    sources = [(_NONE, _NONE) if each is None else (_input(each), _addend(each)) for each in commands]
    read = np.array(sources, np.int64).reshape(-1, 2, 3)
    return [_why(index, commands, written, read) for index in range(len(commands))]


def _why(index: int, commands: Sequence[Command | None], written: Spans, read: Spans) -> str:
    command, span = commands[index], written[index]
    if not isinstance(command, ConvCommand) or not span.any():
        return ""
    after = index + 1
    ends = np.flatnonzero(_overlap(written[after:], span))
    last = after + int(ends[0]) + 1 if len(ends) else len(commands)
    as_input, as_addend = _overlap(read[after:last], span).T
    readers = np.flatnonzero(as_input | as_addend)
    if not len(readers):
        return "the host reads the result"
    if len(readers) > 1:
        return f"{len(readers)} commands read the result"
    reader = commands[after + int(readers[0])]
    if not isinstance(reader, ConvCommand):
        return "an FC command reads the result"
    if as_addend[readers[0]]:
        return f"a command {'reads and ' if as_input[readers[0]] else ''}adds the result, from device memory"
    if reader.input_buf != command.output_buf or len(list(_chains(command))) > 1:
        return "the result is a part of what is read"
    if Extent(reader.w, reader.h, reader.z, reader.c) != list(chain(command))[-1].out:
        return "the result is read flat"
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


def _input(command: Command) -> tuple[int, int, int]:
    if isinstance(command, FcCommand):
        return _span(command.input_buf, command.input_size)
    return _span(command.input_buf, command.samples * command.w * command.h * command.z * command.c)


def _addend(command: Command) -> tuple[int, int, int]:
    """Its first element is enough: results and addends are whole maps."""
    adds = isinstance(command, ConvCommand) and command.output_mode == OutputMode.ADD
    return _span(command.eltwise_buf, 1) if isinstance(command, ConvCommand) and adds else _NONE


def _written(command: Command) -> tuple[int, int, int]:
    """None for a command that the driver would refuse."""
    if isinstance(command, FcCommand):
        return _span(command.output_buf, command.output_size)
    if limits(command, CHIP) is not None:
        return _NONE
    made = sum(link.out.elements for link in chain(command) if link.external)
    return _span(command.output_buf, command.samples * made)


def _span(buf: Buf, elements: int) -> tuple[int, int, int]:
    """Of fp16. Offsets beyond any memory are cut down."""
    first = min(buf.offs, _LAST)
    return min(buf.mem, _LAST), first, first + 2 * elements


def _overlap(spans: Spans, span: Spans) -> Mask:
    memory, first, end = np.moveaxis(spans, -1, 0)
    return (memory == span[0]) & (first < span[2]) & (span[1] < end)
