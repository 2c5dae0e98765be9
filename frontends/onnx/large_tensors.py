"""Reading a model file without holding its weights twice.

Protobuf would copy every weight out of the file's bytes and once more on access. Here the raw data of large
initializers is left out of what protobuf parses, and read from the file straight into its array when it is needed.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bmcompiler.errors import FileFormatError

LARGE = 1 << 16
"""Bytes of raw data from which on a tensor is left in the file."""

# field numbers of onnx.proto
_GRAPH = 7  # ModelProto.graph
_INITIALIZER = 5  # GraphProto.initializer
_RAW_DATA = 9  # TensorProto.raw_data
_BYTES = 2  # wire type of everything with a length
_FIXED = {1: 8, 5: 4}  # wire type -> bytes


@dataclass(frozen=True)
class Span:
    """Raw data that stayed in the file: `size` bytes at `offset`."""

    path: Path
    offset: int
    size: int

    def read(self) -> np.ndarray:
        """The bytes. Raises FileFormatError when the file has become shorter."""
        data = np.empty(self.size, np.uint8)
        with self.path.open("rb") as file:
            file.seek(self.offset)
            if file.readinto(data.data) != self.size:
                raise FileFormatError("has changed while it was read", file=self.path)
        return data


@dataclass(frozen=True)
class _Field:
    number: int
    wire: int
    start: int
    """Where its tag begins."""
    first: int
    """Where its value begins, after tag and length."""
    end: int


class _IrregularError(Exception):
    """Not plain protobuf, or something that only a full parser gets right."""


def split_file(path: Path) -> tuple[bytes, Mapping[int, Span]]:
    """A model file without the raw data of large initializers, and where those are, by index of the initializer.

    A file that is not plain enough comes back whole, for protobuf to judge. Raises OSError when it cannot be read.
    """
    with path.open("rb") as file:
        if path.stat().st_size < LARGE:
            return file.read(), {}
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _split(data, path)
            except _IrregularError:
                return data[:], {}


def _split(data: mmap.mmap, path: Path) -> tuple[bytes, Mapping[int, Span]]:
    graphs = [field for field in _fields(data, 0, len(data)) if field.number == _GRAPH]
    if len(graphs) != 1 or graphs[0].wire != _BYTES:
        raise _IrregularError
    (graph,) = graphs
    pieces, spans, index, copied = [], {}, 0, graph.first
    for field in _fields(data, graph.first, graph.end):
        if field.number != _INITIALIZER:
            continue
        raw = _raw_data(data, field) if field.end - field.first >= LARGE else None
        if raw is not None:
            spans[index] = Span(path, raw.first, raw.end - raw.first)
            rest = data[field.first : raw.start] + data[raw.end : field.end]
            pieces += [data[copied : field.start], _header(_INITIALIZER, len(rest)), rest]
            copied = field.end
        index += 1
    pieces.append(data[copied : graph.end])
    size = sum(map(len, pieces))
    return b"".join([data[: graph.start], _header(_GRAPH, size), *pieces, data[graph.end :]]), spans


def _raw_data(data: mmap.mmap, tensor: _Field) -> _Field | None:
    """The raw_data field of a tensor when it is large and the only one."""
    if tensor.wire != _BYTES:
        raise _IrregularError
    found = [field for field in _fields(data, tensor.first, tensor.end) if field.number == _RAW_DATA]
    if len(found) != 1 or found[0].wire != _BYTES or found[0].end - found[0].first < LARGE:
        return None
    return found[0]


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[_Field]:
    while start < end:
        tag, first = _varint(data, start, end)
        wire = tag & 7
        if wire == _BYTES:
            size, first = _varint(data, first, end)
            stop = first + size
        elif wire == 0:
            _, stop = _varint(data, first, end)
        elif wire in _FIXED:
            stop = first + _FIXED[wire]
        else:
            raise _IrregularError
        if stop > end or tag >> 3 == 0:
            raise _IrregularError
        yield _Field(tag >> 3, wire, start, first, stop)
        start = stop


def _varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    """Value and the position after it."""
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise _IrregularError


def _header(number: int, size: int) -> bytes:
    """Tag and length of a field of `size` bytes."""
    out = bytearray()
    for value in (number << 3 | _BYTES, size):
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
    return bytes(out)
