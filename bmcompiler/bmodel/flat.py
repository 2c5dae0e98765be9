"""FlatBuffers tables that are described as text: a bounds-checked reader and a deterministic writer.

A table is a dict of its fields by name; a field that is absent, or holds its default, may be left out. Structs are
tuples, vectors are lists (bytes for uint8), pieces of a file's binary section (`Binary`) are buffers.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import flatbuffers  # type: ignore[import-untyped]
from flatbuffers import number_types

from bmcompiler.bmodel.model import Buffer

Values: TypeAlias = dict[str, Any]

# Scalar -> struct code; the builder's own description of it follows.
SCALARS = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
}
_FLAGS = {code: getattr(number_types, kind.capitalize() + "Flags") for kind, code in SCALARS.items()}
BINARY = "Binary"
# Bytes of tables and vectors that may be visited per byte of the description: files share command groups and vectors
# of offsets, but a description made to be visited exponentially often must end soon.
_VISITS = 16


class FlatError(ValueError):
    """A description that breaks the format; the message is one clause."""


@dataclass(frozen=True)
class SchemaField:
    """A field of a table or struct; its number is its place. `kind`: a scalar, "string", a struct or a table."""

    name: str
    kind: str
    vector: bool = False
    default: int | float = 0
    required: bool = False


@dataclass(frozen=True)
class Schema:
    """Tables and structs by name; tables must not contain themselves, so that reading ends."""

    tables: dict[str, tuple[SchemaField, ...]]
    structs: dict[str, tuple[SchemaField, ...]]
    root: str

    def layout(self, kind: str) -> struct.Struct:
        """Encoding of a scalar or struct."""
        codes = SCALARS.get(kind) or "".join(SCALARS[field.kind] for field in self.structs[kind])
        return struct.Struct("<" + codes)

    def inline(self, kind: str) -> bool:
        """Whether values of a kind are stored in place (else through an offset)."""
        return kind in SCALARS or kind in self.structs


_BLOCK = re.compile(r"(table|struct)\s+(\w+)\s*\{([^}]*)\}")
_FIELD = re.compile(r"(\w+)\s*:\s*(\[?)(\w+)\]?\s*(?:=\s*([-\d.]+))?\s*(\(required\))?")


def parse_schema(text: str) -> Schema:
    """The tables of a schema text (.fbs): tables and structs of scalars, strings, vectors and other tables."""
    text = re.sub(r"//[^\n]*", "", text)
    found: dict[str, dict[str, tuple[SchemaField, ...]]] = {"table": {}, "struct": {}}
    for word, name, body in _BLOCK.findall(text):
        fields = [_FIELD.fullmatch(line.strip()) for line in body.split(";") if line.strip()]
        found[word][name] = tuple(_field(match) for match in fields)
    root = re.search(r"root_type\s+(\w+)", text)
    if root is None:
        raise ValueError("the schema names no root_type")
    return Schema(found["table"], found["struct"], root[1])


def _field(match: re.Match[str] | None) -> SchemaField:
    if match is None:
        raise ValueError("a field of the schema cannot be read")
    name, vector, kind, default, required = match.groups()
    number = float(default or 0) if kind == "float32" else int(default or 0)
    return SchemaField(name, kind, bool(vector), number, bool(required))


class Reader:
    """Reads one description; nothing outside it is touched, and the work is bounded by its size.

    Args:
        data: the description. binary: the section that `Binary` structs point into.
    """

    def __init__(self, schema: Schema, data: memoryview, binary: memoryview) -> None:
        self._schema, self._data, self._binary = schema, data, binary
        self._left = _VISITS * len(data)
        self._pieces: dict[tuple[int, int], memoryview] = {}

    def root(self) -> Values:
        """The root table. Raises FlatError."""
        values = self._table(self._schema.root, self._offset(0))
        if sum(size for _, size in self._pieces) > len(self._binary):
            raise FlatError("pieces of the binary section overlap")
        return values

    def _bytes(self, at: int, size: int) -> memoryview:
        if at < 0 or at + size > len(self._data):
            raise FlatError(f"an entry at byte {at} leaves the {len(self._data)} bytes")
        return self._data[at : at + size]

    def _number(self, code: str, at: int) -> int:
        return int(struct.unpack("<" + code, self._bytes(at, struct.calcsize("<" + code)))[0])

    def _offset(self, at: int) -> int:
        """Where the unsigned offset at `at` points."""
        return at + self._number("I", at)

    def _visit(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise FlatError("entries are shared more often than any tool writes")

    def _table(self, name: str, at: int) -> Values:
        vtable = at - self._number("i", at)
        size = self._number("H", vtable)
        length = self._number("H", vtable + 2)
        if size < 4 or size % 2 or length < 4:
            raise FlatError(f"{name} at byte {at} has no valid list of fields")
        slots = struct.unpack(f"<{size // 2 - 2}H", self._bytes(vtable, size)[4:])
        self._bytes(at, length)
        self._visit(size + length)
        values: Values = {}
        for field, slot in zip(self._schema.tables[name], slots):
            if slot:
                values[field.name] = self._value(f"{name}.{field.name}", field, at, slot, length)
        for field in self._schema.tables[name]:
            if field.required and field.name not in values:
                raise FlatError(f"{name} lacks its {field.name}")
        return values

    def _value(self, where: str, field: SchemaField, table: int, slot: int, length: int) -> Any:
        inline = self._schema.inline(field.kind) and not field.vector
        width = self._schema.layout(field.kind).size if inline else 4
        if slot + width > length:
            raise FlatError(f"{where} leaves its table")
        at = table + slot
        if inline:
            return self._fixed(where, field.kind, at)
        at = self._offset(at)
        return self._vector(where, field.kind, at) if field.vector else self._single(where, field.kind, at)

    def _single(self, where: str, kind: str, at: int) -> Any:
        if kind != "string":
            return self._table(kind, at)
        size = self._number("I", at)
        self._visit(size)
        try:
            return str(self._bytes(at + 4, size), "utf-8")
        except UnicodeDecodeError as error:
            raise FlatError(f"{where} is not text") from error

    def _vector(self, where: str, kind: str, at: int) -> Any:
        count = self._number("I", at)
        inline = self._schema.inline(kind)
        width = self._schema.layout(kind).size if inline else 4
        data = self._bytes(at + 4, count * width)
        self._visit(count * width)
        if kind == "uint8":
            return bytes(data)
        places = range(at + 4, at + 4 + count * width, width)
        if inline:
            return [self._fixed(where, kind, place) for place in places]
        return [self._single(where, kind, self._offset(place)) for place in places]

    def _fixed(self, where: str, kind: str, at: int) -> Any:
        layout = self._schema.layout(kind)
        values = layout.unpack(self._bytes(at, layout.size))
        if kind == BINARY:
            return self._piece(where, *values)
        return values[0] if kind in SCALARS else values

    def _piece(self, where: str, start: int, size: int) -> memoryview:
        """A piece of the binary section; one object per place, so that what is shared stays shared."""
        if start + size > len(self._binary):
            raise FlatError(f"{where} is said to be bytes {start} to {start + size} of {len(self._binary)}")
        key = (start, size)
        if key not in self._pieces:
            self._pieces[key] = self._binary[start : start + size]
        return self._pieces[key]


class Writer:
    """Writes one description; equal values give equal bytes.

    Args:
        place: gives the (start, size) of a buffer in the binary section.
    """

    def __init__(self, schema: Schema, place: Callable[[Buffer], tuple[int, int]]) -> None:
        self._schema, self._place = schema, place
        self._builder = flatbuffers.Builder(1024)

    def finish(self, root: Values) -> bytes:
        """The description of `root`. Raises FlatError when a required field is missing or a number does not fit."""
        self._builder.Finish(self._table(self._schema.root, root))
        return bytes(self._builder.Output())

    def _table(self, name: str, values: Values) -> int:
        fields = self._schema.tables[name]
        for field in fields:
            if field.required and values.get(field.name) is None:
                raise FlatError(f"{name} lacks its {field.name}")
        given = [
            (slot, field, values[field.name]) for slot, field in enumerate(fields) if values.get(field.name) is not None
        ]
        # FlatBuffers are built from the leaves: what a table points to comes before the table.
        offsets = {
            slot: self._child(f"{name}.{field.name}", field, value)
            for slot, field, value in given
            if field.vector or not self._schema.inline(field.kind)
        }
        self._builder.StartObject(len(fields))
        for slot, field, value in given:
            if slot in offsets:
                self._builder.PrependUOffsetTRelativeSlot(slot, offsets[slot], 0)
            elif field.kind not in SCALARS or value != field.default:
                self._builder.PrependStructSlot(slot, self._fixed(f"{name}.{field.name}", field.kind, value), 0)
        return int(self._builder.EndObject())

    def _child(self, where: str, field: SchemaField, value: Any) -> int:
        if not field.vector:
            return self._single(field.kind, value)
        if field.kind == "uint8":
            return int(self._builder.CreateByteVector(bytes(value)))
        inline = self._schema.inline(field.kind)
        width = self._schema.layout(field.kind).size if inline else 4
        offsets = [] if inline else [self._single(field.kind, item) for item in value]
        self._builder.StartVector(width, len(value), min(width, 8))
        for place in reversed(range(len(value))):
            if inline:
                self._fixed(where, field.kind, value[place])
            else:
                self._builder.PrependUOffsetTRelative(offsets[place])
        return int(self._builder.EndVector())

    def _single(self, kind: str, value: Any) -> int:
        return int(self._builder.CreateString(value)) if kind == "string" else self._table(kind, value)

    def _fixed(self, where: str, kind: str, value: Any) -> int:
        """Append the bytes of a scalar or struct; where they are."""
        numbers = self._place(value) if kind == BINARY else (value,) if kind in SCALARS else value
        codes = [SCALARS[kind]] if kind in SCALARS else [SCALARS[field.kind] for field in self._schema.structs[kind]]
        align = max(struct.calcsize(code) for code in codes)
        self._builder.Prep(align, sum(struct.calcsize(code) for code in codes) - align)
        for code, number in zip(reversed(codes), reversed(numbers)):
            try:
                struct.pack("<" + code, number)
            except (struct.error, OverflowError) as error:
                raise FlatError(f"{where}: {number} does not fit") from error
            self._builder.Place(number, _FLAGS[code])
        return int(self._builder.Offset())
