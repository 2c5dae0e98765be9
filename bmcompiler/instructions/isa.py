"""Bit-field tables: one declaration per instruction format gives encoder, decoder, range checks and reference page.

A `Format` is a fixed-size little-endian integer; a field sits at `first_bit` (0 = least significant) and may cross word
boundaries. Wider quantities (a 40-bit address) are two fields. Bulk work is vectorised over commands (`encode`,
`decode`: one numpy column per field); `encode_one` is the quick path for kernel calls, made one command at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bmcompiler.errors import EncodingError
from bmcompiler.numeric.arrays import Array, Bytes, Ints

MAX_FIELD_BITS = 32
_WORD = 32

Fields = dict[str, int]
Columns = dict[str, Ints]


@dataclass(frozen=True)
class Field:
    """One unsigned bit field: `width` bits (1..32) from bit `first_bit`; `default` is its reset value."""

    name: str
    first_bit: int
    width: int
    default: int = 0
    doc: str = ""

    @property
    def end_bit(self) -> int:
        """First bit after the field."""
        return self.first_bit + self.width


class Format:
    """An instruction format of `bits` bits (a multiple of 32) made of non-overlapping fields.

    Raises:
        ValueError: at construction, when fields overlap, leave the format, repeat a name or have an oversized default.
    """

    def __init__(self, name: str, bits: int, fields: tuple[Field, ...]) -> None:
        self.name, self.bits, self.fields = name, bits, fields
        self.size = bits // 8
        _check_layout(name, bits, fields)
        self.by_name: dict[str, Field] = {field.name: field for field in fields}
        self._quick = {f.name: (f.first_bit, f.width, f.default) for f in fields}
        self._reset = sum(f.default << f.first_bit for f in fields)
        first = np.array([f.first_bit for f in fields], np.int64)
        self._word = first // _WORD
        self._shift = (first % _WORD).astype(np.uint64)
        self._mask = np.array([(1 << f.width) - 1 for f in fields], np.uint64)

    @classmethod
    def packed(cls, name: str, bits: int, widths: Mapping[str, int]) -> Format:
        """A format whose fields follow each other without gaps: {name: width}, the first one at bit 0."""
        ends = accumulate(widths.values())
        fields = (Field(field, end - width, width) for (field, width), end in zip(widths.items(), ends))
        return cls(name, bits, tuple(fields))

    def __repr__(self) -> str:
        return f"Format({self.name!r}, bits={self.bits}, {len(self.fields)} fields)"

    def defaults(self, n: int) -> Columns:
        """Columns of n commands that hold the reset values: {field: (n,) int64}."""
        return {f.name: np.full(n, f.default, np.int64) for f in self.fields}

    def encode(self, table: Mapping[str, ArrayLike]) -> Bytes:
        """Pack columns (scalars broadcast, missing fields take their default) into an (n, size) uint8 array.

        Raises:
            EncodingError: unknown field, or a value that does not fit its field.
        """
        columns = {name: np.atleast_1d(np.asarray(values)) for name, values in table.items()}
        n = max((column.shape[0] for column in columns.values()), default=1)
        words = np.zeros((n, self.bits // _WORD + 1), np.uint64)
        reset = np.frombuffer(self._reset.to_bytes(self.size, "little"), "<u4")
        words[:, :-1] = reset
        for name, column in columns.items():
            self._insert(words, self._known(name), column)
        return np.ascontiguousarray(words[:, :-1].astype("<u4")).view(np.uint8).reshape(n, self.size)

    def _insert(self, words: NDArray[np.uint64], field: Field, column: Array) -> None:
        bad = (column < 0) | (column >= (1 << field.width))
        if bad.any():
            self._too_wide(field, int(column[np.argmax(bad)]))
        change = np.broadcast_to(column.astype(np.uint64) ^ np.uint64(field.default), words.shape[:1])
        word, shift = divmod(field.first_bit, _WORD)
        placed = change << np.uint64(shift)
        words[:, word] ^= placed & np.uint64(0xFFFFFFFF)
        words[:, word + 1] ^= placed >> np.uint64(_WORD)

    def decode(self, data: ArrayLike) -> Columns:
        """Columns {field: (n,) int64} of an (n, size) uint8 array, or of a flat one of n*size bytes.

        Raises:
            EncodingError: when the byte count is not a multiple of the format's size.
        """
        raw = np.ascontiguousarray(data, dtype=np.uint8).reshape(-1)
        if raw.size % self.size:
            raise EncodingError(f"{self.name}: {raw.size} bytes are not whole commands of {self.size} bytes")
        n = raw.size // self.size
        words = np.zeros((self.bits // _WORD + 1, n), np.uint64)
        words[:-1] = raw.view("<u4").reshape(n, self.bits // _WORD).T
        pairs = words[self._word] | (words[self._word + 1] << np.uint64(_WORD))
        values = ((pairs >> self._shift[:, None]) & self._mask[:, None]).astype(np.int64)
        return {field.name: values[i] for i, field in enumerate(self.fields)}

    def encode_one(self, **values: int) -> bytes:
        """One command of `size` bytes: the reset values overridden by `values`.

        Raises:
            EncodingError: unknown field, or a value that is not an integer or does not fit its field.
        """
        return self.pack(values)

    def pack(self, values: Mapping[str, int]) -> bytes:
        """`encode_one` for values that are already in a mapping (saves a copy per command)."""
        return self.pack_bits(values).to_bytes(self.size, "little")

    def pack_bits(self, values: Mapping[str, int]) -> int:
        """`pack` as one integer, for callers that add fields before they make bytes."""
        quick = self._quick
        bits = self._reset
        try:
            for name, value in values.items():
                first_bit, width, default = quick[name]
                if value == default:
                    continue
                value = index(value)
                if value >> width:  # also true for every negative value
                    self._too_wide(self.by_name[name], value)
                bits ^= (value ^ default) << first_bit
        except KeyError as error:
            raise self._unknown(name) from error
        except TypeError as error:
            raise EncodingError(f"{self.name}: field '{name}' needs an integer, got {value!r}") from error
        return bits

    def unpack(self, data: bytes) -> dict[str, int]:
        """Field values of one command of `size` bytes (use `decode` for many)."""
        if len(data) != self.size:
            raise EncodingError(f"{self.name}: a command has {self.size} bytes, got {len(data)}")
        bits = int.from_bytes(data, "little")
        return {f.name: (bits >> f.first_bit) & ((1 << f.width) - 1) for f in self.fields}

    def _known(self, name: str) -> Field:
        if name not in self.by_name:
            raise self._unknown(name)
        return self.by_name[name]

    def _unknown(self, name: str) -> EncodingError:
        return EncodingError(f"{self.name}: no field is called '{name}'")

    def _too_wide(self, field: Field, value: int) -> None:
        limit = (1 << field.width) - 1
        raise EncodingError(
            f"{self.name}: value {value} of field '{field.name}' does not fit {field.width} bits (0..{limit})"
        )


def rows_of(columns: Columns) -> Iterator[Fields]:
    """The fields of each command, of what `Format.decode` gives of all."""
    return (dict(zip(columns, row)) for row in zip(*(column.tolist() for column in columns.values())))


def split_stream(data: bytes | memoryview, formats: Mapping[int, Format]) -> tuple[Ints, dict[int, Columns]]:
    """A stream of commands of two formats of one size that are told apart by their first bit.

    Returns: the number (n,) of every command's format, and the columns of each format's commands.
    Raises EncodingError when a piece of a command is left.
    """
    size = formats[0].size
    raw = np.frombuffer(data, np.uint8)
    if raw.size % size:
        raise EncodingError(f"{raw.size} bytes are not whole commands of {size} bytes")
    rows = raw.reshape(-1, size)
    kind = (rows[:, 0] & 1).astype(np.int64) if len(rows) else np.zeros(0, np.int64)
    return kind, {number: layout.decode(rows[kind == number]) for number, layout in formats.items()}


def stream_commands(data: bytes | memoryview, formats: Mapping[int, Format]) -> Iterator[tuple[int, Fields]]:
    """(number of the format, fields) of each command of such a stream, in order. Raises EncodingError as above."""
    kind, columns = split_stream(data, formats)
    rows = {number: rows_of(found) for number, found in columns.items()}
    return ((number, next(rows[number])) for number in kind.tolist())


def _check_layout(name: str, bits: int, fields: tuple[Field, ...]) -> None:
    if bits % _WORD:
        raise ValueError(f"{name}: {bits} bits are not whole 32-bit words")
    if len({field.name for field in fields}) != len(fields):
        raise ValueError(f"{name}: a field name is used twice")
    ordered = sorted(fields, key=lambda field: field.first_bit)
    end = 0
    for field in ordered:
        if not 1 <= field.width <= MAX_FIELD_BITS or field.first_bit < end or field.end_bit > bits:
            raise ValueError(f"{name}: field '{field.name}' overlaps another, leaves the format or has a bad width")
        if not 0 <= field.default < 1 << field.width:
            raise ValueError(f"{name}: default {field.default} of field '{field.name}' does not fit")
        end = field.end_bit
