"""Streams of commands of variable length, split and decoded (bm1684x.md 2.1).

A stream ends with a system command; zero bytes may follow it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bmcompiler.backends.bm1684x.codes import Move, System, Task
from bmcompiler.backends.bm1684x.isa import FORMAT_OF
from bmcompiler.bmodel.model import Buffer
from bmcompiler.errors import EncodingError
from bmcompiler.instructions.isa import Columns, Fields, Format, rows_of
from bmcompiler.instructions.order import STREAMS, Engine
from bmcompiler.numeric.arrays import Ints

STREAM_STEP = 128  # streams are padded to a multiple of it
_HEAD_BYTES = 8


@dataclass(frozen=True)
class Stream:
    """The commands of one engine in order.

    Attributes:
        formats: of every command. starts: where it begins.
        padding: zero bytes after the last one.
    """

    data: bytes
    formats: list[Format]
    starts: list[int]
    padding: int

    def __len__(self) -> int:
        return len(self.formats)

    def columns(self) -> list[tuple[Ints, Format, Columns]]:
        """Per format that occurs: the numbers of its commands, and their fields as columns."""
        raw = np.frombuffer(self.data, np.uint8)
        places: dict[Format, list[int]] = defaultdict(list)
        for number, layout in enumerate(self.formats):
            places[layout].append(number)
        start = np.array(self.starts, np.int64)
        found = []
        for layout, numbers in places.items():
            at = np.array(numbers, np.int64)
            rows = raw[start[at][:, None] + np.arange(layout.size)]
            found.append((at, layout, layout.decode(rows)))
        return found

    def fields(self) -> list[Fields]:
        """The fields of every command."""
        result: list[Fields] = [{}] * len(self)
        for numbers, _, columns in self.columns():
            for number, row in zip(numbers.tolist(), rows_of(columns)):
                result[number] = row
        return result


def split(engine: Engine, data: Buffer) -> Stream:
    """The commands of a stream, with or without its end mark.

    Raises:
        EncodingError: a command that does not exist or is cut off, or bytes other than 0 after the end mark; names it.
    """
    raw, at = bytes(data), 0
    formats: list[Format] = []
    starts: list[int] = []
    format_of = FORMAT_OF[engine]
    while at < len(raw):
        head = int.from_bytes(raw[at : at + _HEAD_BYTES], "little")
        try:
            layout = format_of(head)
        except EncodingError as error:
            raise EncodingError(f"{engine.name} command {len(formats)} at byte {at}: {error.reason}") from error
        if at + layout.size > len(raw):
            reason = f"has {layout.size} bytes, of which {len(raw) - at} are there"
            raise EncodingError(f"{engine.name} command {len(formats)} at byte {at} ({layout.name}): it {reason}")
        formats.append(layout)
        starts.append(at)
        at += layout.size
        if engine in STREAMS and _is_end(engine, head):
            break
    if raw[at:].strip(b"\0"):
        raise EncodingError(f"{engine.name} stream: bytes other than 0 follow its end mark at byte {at}")
    return Stream(raw, formats, starts, len(raw) - at)


def _is_end(engine: Engine, head: int) -> bool:
    if engine is Engine.TIU:
        return (head >> 41 & 15, head >> 45 & 31) == (Task.SYSTEM, System.END)
    return head >> 32 & 15 == Move.SYSTEM and bool(head >> 3 & 1)


def end_mark(engine: Engine, number: int) -> bytes:
    """The command that ends a stream; its id is that of the last command + 1."""
    if engine is Engine.TIU:
        return (number << 1 | Task.SYSTEM << 41 | System.END << 45).to_bytes(16, "little")
    return (1 << 3 | 1 << 5 | number << 9 | Move.SYSTEM << 32).to_bytes(16, "little")


def ended(engine: Engine, commands: Sequence[bytes]) -> bytes:
    """Commands with ids from 1 on as the stream that files have."""
    stream = b"".join(commands) + end_mark(engine, len(commands) + 1)
    return stream + bytes(-len(stream) % STREAM_STEP)
