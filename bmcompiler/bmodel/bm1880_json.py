"""The older BM1880 model file, read only: length, JSON text, 12 bytes, data (bm1880.md 10.2).

All numbers of the JSON are decimal strings; offsets are relative to the data behind the 12 bytes.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import Any

from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.bmodel.model import MAX_BYTES, MAX_RANK, Buffer, TensorInfo, damaged
from bmcompiler.errors import FileFormatError
from bmcompiler.files.store import StrPath

DATA_MAGIC = b"\x55\xaa\xaa\x55"
GAP = 12
CHIP = "1880"
MAX_DIGITS = 20


@dataclass(frozen=True)
class _Node:
    """A JSON value with its path, so that every message says where it was."""

    value: Any
    path: str
    file: StrPath

    def error(self, wanted: str) -> FileFormatError:
        return damaged(f"{self.path or 'the JSON text'} should be {wanted}", self.file)

    def get(self, key: str) -> _Node:
        if not isinstance(self.value, dict) or key not in self.value:
            raise self.error(f"an object with '{key}'")
        return _Node(self.value[key], f"{self.path}.{key}" if self.path else key, self.file)

    def has(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def items(self, count: int | None = None, most: int | None = None) -> list[_Node]:
        if not isinstance(self.value, list) or (count is not None and len(self.value) != count):
            raise self.error("a list" if count is None else f"a list of {count}")
        if most is not None and len(self.value) > most:
            raise self.error(f"a list of at most {most}")
        return [_Node(value, f"{self.path}[{index}]", self.file) for index, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("a string")
        return self.value

    def number(self, top: int = MAX_BYTES) -> int:
        value = self.value
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= top:
            raise self.error(f"a whole number from 0 to {top}")
        return value

    def real(self) -> float:
        """A float32 value, the precision of the current kind of file."""
        wanted = "a number not below zero"
        if isinstance(self.value, bool) or not isinstance(self.value, str | int | float):
            raise self.error(wanted)
        try:
            value: float = struct.unpack("<f", struct.pack("<f", float(self.value)))[0]
        except (ValueError, OverflowError):  # no number, or beyond float32
            raise self.error(wanted) from None
        if not (math.isfinite(value) and value >= 0):
            raise self.error(wanted)
        return value

    def shape(self) -> tuple[int, ...]:
        return tuple(node.number() for node in self.items(most=MAX_RANK))

    def slice(self, data: memoryview) -> memoryview:
        start, size = (node.number() for node in self.items(2))
        if start + size > len(data):
            raise self.error(f"a range inside the {len(data)} bytes of data (it is {start} to {start + size})")
        return data[start : start + size]


def read(data: memoryview, file: StrPath) -> Bm1880Model:
    """A model from the content of an older file; weight sets are views of `data`.

    Raises:
        FileFormatError: truncated, malformed, or without a program for this chip.
    """
    length = int.from_bytes(data[:4], "little")
    if 4 + length + GAP > len(data):
        raise damaged(f"the JSON text should be {length} bytes, the file has {len(data)} in all", file)
    gap = data[4 + length : 4 + length + GAP]
    body = data[4 + length + GAP :]
    if bytes(gap[:4]) != DATA_MAGIC:
        raise damaged("the mark between JSON text and data is missing", file)
    size = int.from_bytes(gap[4:8], "little")
    if size > len(body):
        raise damaged(f"{size} bytes of data are announced, {len(body)} follow", file)
    model = _model(_Node(_parse(data[4 : 4 + length], file), "", file), body[:size])
    model.check(file)
    return model


def _parse(text: memoryview, file: StrPath) -> object:
    try:
        return json.loads(bytes(text).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged(f"the JSON text cannot be read ({error})", file) from error


def _model(root: _Node, body: memoryview) -> Bm1880Model:
    varieties = [
        variety
        for backend in root.get("backends").items()
        if str(backend.get("target").value) == CHIP
        for variety in backend.get("varieties").items()
    ]
    if not varieties:
        raise FileFormatError(f"there is no program for chip {CHIP}", file=root.file)
    weights: list[Buffer] = [root.get("weight").slice(body)]
    indices: list[int] = []
    for variety in varieties:
        indices.append(0)
        if variety.has("weight"):  # replaces the model's for this command
            indices[-1] = len(weights)
            weights.append(variety.get("weight").slice(body))
    return Bm1880Model(
        net_name=root.get("name").text(),
        commands=[_command(variety, body, index) for variety, index in zip(varieties, indices)],
        weights=weights,
        version=root.get("version").text(),
        read_as="bm1880-json",
    )


def _command(variety: _Node, body: memoryview, weight_index: int) -> Command:
    start, size = variety.get("output_offset").number(), variety.get("output_size").number()
    outputs, offset = [], start
    for node in variety.get("sub_outputs").items():
        outputs.append(_tensor(node, node.get("name").text(), offset))
        offset += outputs[-1].size
    if offset - start > size:
        raise variety.get("output_size").error(f"{offset - start}, the sum of its sub_outputs")
    return Command(
        inputs=[_tensor(variety, "", 0)],
        outputs=outputs,
        cmdbuf=bytes(variety.get("cmdbuf").slice(body)),
        neuron_size=variety.get("neuron_size").number(),
        weight_index=weight_index,
    )


def _tensor(node: _Node, name: str, offset: int) -> TensorInfo:
    return TensorInfo(name, node.get("shape").shape(), offset=offset, threshold=node.get("threshold").real())
