"""The command buffer: records of an 8-byte header and a payload, back to back (bm1880.md 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bmcompiler.backends.bm1880.isa import (
    CPU,
    CPU_NAME_BYTES,
    CPU_PAYLOAD,
    FORMATS,
    HEADER,
    HEADER_SIZE,
    PAYLOAD_SIZE,
    RECORD_MAGIC,
    Engine,
)
from bmcompiler.errors import EncodingError, FileFormatError
from bmcompiler.numeric.arrays import Bytes, Ints

_ENGINES = frozenset(int(engine) for engine in FORMATS)
ENGINE_MASK = 0x0F  # the meaningful bits of header byte 2
_LEN_MAX = 255  # of the header's length byte; longer payloads put their length into the mask word
_NAME_MAX = 15
_SIZES = {int(engine): size for engine, size in PAYLOAD_SIZE.items()}


@dataclass(frozen=True)
class Records:
    """Index of a command buffer: entry i of each (n,) array belongs to record i.

    `offset` and `length` (bytes) locate payloads in `data`; `flags` are FLAG_NEURON | FLAG_WEIGHT bits.
    """

    data: Bytes
    engine: Ints
    offset: Ints
    length: Ints
    flags: Ints

    def __len__(self) -> int:
        return len(self.engine)

    def __iter__(self) -> Iterator[tuple[int, bytes, int]]:
        """(engine, payload, flags) of each record."""
        raw = self.data.tobytes()
        rows = zip(self.engine.tolist(), self.offset.tolist(), self.length.tolist(), self.flags.tolist(), strict=True)
        return ((engine, raw[at : at + size], flags) for engine, at, size, flags in rows)

    def of(self, engine: Engine) -> Ints:
        """Indices of the records of one engine."""
        return np.flatnonzero(self.engine == engine)

    def payloads(self, engine: Engine) -> Bytes:
        """Payloads of all TPU or GDMA records as (n, 112) or (n, 64) uint8, ready for `Format.decode`."""
        at = self.offset[self.of(engine)]
        gathered: Bytes = self.data[at[:, None] + np.arange(_SIZES[engine])]
        return gathered


def records(cmdbuf: bytes | bytearray | memoryview) -> Records:
    """Split a command buffer into records, checking every header.

    Raises:
        FileFormatError: bad magic, unknown engine, wrong or truncated length; names the record and its byte offset.
    """
    data = bytes(cmdbuf)
    rows: list[tuple[int, int, int, int]] = []
    at, end = 0, len(data)
    while at < end:
        if at + HEADER_SIZE > end:
            raise _malformed(len(rows), at, f"header is cut off, {end - at} of {HEADER_SIZE} bytes are left")
        if data[at] != RECORD_MAGIC:
            raise _malformed(len(rows), at, f"magic byte is 0x{data[at]:02x} instead of 0x{RECORD_MAGIC:02x}")
        engine = data[at + 2] & 15
        length = data[at + 1] or int.from_bytes(data[at + 4 : at + 8], "little")
        _check_length(len(rows), at, engine, length)
        body = at + HEADER_SIZE
        if body + length > end:
            raise _malformed(len(rows), at, f"payload is cut off, {end - body} of {length} bytes are left")
        rows.append((engine, body, length, data[at + 3] & 3))
        at = body + length
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    return Records(np.frombuffer(data, np.uint8), columns[0], columns[1], columns[2], columns[3])


def _check_length(index: int, at: int, engine: int, length: int) -> None:
    if engine not in _ENGINES:
        raise _malformed(index, at, f"engine id {engine} does not exist on this chip")
    expected = _SIZES.get(engine)
    name = Engine(engine).name
    if expected is not None and length != expected:
        raise _malformed(index, at, f"{name} payload has {length} bytes instead of {expected}")
    if expected is None and (length < CPU.size or length % 4):
        raise _malformed(index, at, f"{name} payload of {length} bytes is not whole words of at least {CPU.size} bytes")


def _malformed(index: int, at: int, reason: str) -> FileFormatError:
    return FileFormatError(f"command buffer: record {index} at offset {at}: {reason}")


def pack_cpu(name: str, params: bytes) -> bytes:
    """A CPU record (header and payload) that runs plugin `name` with parameter bytes `params`.

    Raises:
        EncodingError: when the name is not 1..15 ASCII characters.
    """
    label = name.encode("ascii", "replace")
    if not 1 <= len(label) <= _NAME_MAX or not name.isascii() or "\0" in name:
        raise EncodingError(f"CPU record: library name {name!r} must be 1 to {_NAME_MAX} ASCII characters")
    head = bytearray(CPU.encode_one(param_size=len(params)))
    head[CPU_NAME_BYTES] = label.ljust(_NAME_MAX + 1, b"\0")
    body = bytes(head) + params
    size = max(CPU_PAYLOAD, -(-len(body) // 4) * 4)
    short = size if size <= _LEN_MAX else 0
    return HEADER.encode_one(len=short, engine=Engine.CPU, mask=0 if short else size) + body.ljust(size, b"\0")


def normalised(cmdbuf: bytes) -> bytes:
    """The buffer with bits 7:4 of byte 2 of each header cleared: unused bits in which vendor encoders leave garbage.

    Raises:
        FileFormatError: malformed buffer.
    """
    index = records(cmdbuf)
    data = index.data.copy()
    data[index.offset - (HEADER_SIZE - 2)] &= ENGINE_MASK
    return data.tobytes()
