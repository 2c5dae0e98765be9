"""Weights of a model folder: safetensors files, whose headers are read at once and whose tensors when they are needed.

A file is 8 bytes with the length of its header, the header in JSON (name -> type, shape, place), and the bytes.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.files.store import forget_pages
from bmcompiler.llm.config import read_json
from bmcompiler.numeric.arrays import Array
from bmcompiler.text import some_names

_TYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype("<i8"), "I32": np.dtype("<i4"), "I16": np.dtype("<i2"), "I8": np.dtype("i1"), "U8": np.dtype("u1"),
    "U16": np.dtype("<u2"), "U32": np.dtype("<u4"), "U64": np.dtype("<u8"), "BOOL": np.dtype("?"),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
}  # fmt: skip
_LONGEST_HEADER = 100_000_000
_AGAIN = "fetch the file again"


class StoredTensor(NamedTuple):
    """Where a tensor lies: its file, name of its type, shape, first byte in the file."""

    file: Path
    kind: str
    shape: tuple[int, ...]
    start: int


class Checkpoint:
    """The tensors of a folder by name.

    Raises FileFormatError: no weights, a file that is cut off or damaged, a part that is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places: dict[str, StoredTensor] = {}
        self._mapped: dict[Path, mmap.mmap] = {}
        for file in _files(folder):
            self.places.update(_header(file))

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def place(self, name: str, *shapes: Sequence[int]) -> StoredTensor:
        """Where a tensor lies, which must have one of the shapes, if any are given.

        Raises FileFormatError: it is missing, or has another shape than `config.json` asks for.
        """
        if name not in self.places:
            raise FileFormatError(
                f"tensor '{name}' is missing",
                file=self.folder,
                remedy=f"give all files; of {len(self.places)} tensors there are {some_names(sorted(self.places))}",
            )
        found = self.places[name]
        if shapes and found.shape not in {tuple(shape) for shape in shapes}:
            wanted = " or ".join(str(list(shape)) for shape in shapes)
            raise FileFormatError(
                f"tensor '{name}' has shape {list(found.shape)}, config.json asks for {wanted}",
                file=found.file,
                remedy="config.json and weights must be of one model",
            )
        return found

    def read(self, name: str) -> Array:
        """The elements of a tensor, mapped from its file, not to be written to.

        Raises FileFormatError, and UnsupportedError for elements numpy does not know.
        """
        file, kind, shape, start = self.place(name)
        if kind not in _TYPES:
            raise UnsupportedError(
                f"tensor '{name}' has elements of type {kind}, which are not supported",
                file=file,
                remedy="give weights of 16 or 32 bits, or of a known quantization",
            )
        if file not in self._mapped:
            with open(file, "rb") as stream:
                self._mapped[file] = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(self._mapped[file], _TYPES[kind], prod(shape), start).reshape(shape)

    def let_go(self) -> None:
        """What was read need not stay in memory; it is read from the files again when it is needed."""
        for mapped in self._mapped.values():
            forget_pages(mapped)


def _files(folder: Path) -> Iterable[Path]:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        found = sorted(folder.glob("*.safetensors"))
        if not found:
            raise FileFormatError(
                "holds no *.safetensors file", file=folder, remedy="save the model with safe_serialization, as is usual"
            )
        return found
    names = read_json(index).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise FileFormatError("'weight_map' must name a file for each tensor", file=index, remedy=_AGAIN)
    files = [folder / name for name in sorted(set(names.values()))]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise FileFormatError(f"names files that are missing: {some_names(missing)}", file=index, remedy="fetch them")
    return files


def _header(file: Path) -> Iterator[tuple[str, StoredTensor]]:
    """Every tensor of a file with its place; all lie inside the file."""
    size = file.stat().st_size
    with open(file, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise FileFormatError(f"is cut off or no safetensors file ({size} bytes)", file=file, remedy=_AGAIN)
        try:
            header = json.loads(stream.read(length))
        except (ValueError, RecursionError):
            header = None
    if not isinstance(header, dict):
        raise FileFormatError("has a damaged header", file=file, remedy=_AGAIN)
    for name, entry in header.items():
        if name != "__metadata__":
            yield name, _place(file, name, entry, 8 + length, size)


def _place(file: Path, name: str, entry: Any, base: int, size: int) -> StoredTensor:
    try:
        kind, shape, (start, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        whole = all(type(n) is int and n >= 0 for n in (*shape, start, end)) and isinstance(kind, str)
    except (TypeError, KeyError, ValueError):
        whole = False
    if not whole or start > end or (kind in _TYPES and end - start != prod(shape) * _TYPES[kind].itemsize):
        raise FileFormatError(f"tensor '{name}' has a damaged entry in the header", file=file, remedy=_AGAIN)
    if base + end > size:
        raise FileFormatError(
            f"is cut off: tensor '{name}' ends at byte {base + end} of {size}", file=file, remedy=_AGAIN
        )
    return StoredTensor(file, kind, shape, base + start)
