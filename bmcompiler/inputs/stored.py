"""Numeric arrays in .npy and .npz files: headers first, contents when asked for; nothing in a file is executed."""

from __future__ import annotations

import os
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from bmcompiler.errors import CalibrationError
from bmcompiler.numeric.arrays import Array

StrPath = str | os.PathLike[str]
MAGIC = b"\x93NUMPY"
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError),
    *(ValueError, KeyError, OverflowError, RuntimeError, SyntaxError, tokenize.TokenError),
)
"""What zipfile and numpy raise for damaged files; SyntaxError and TokenError come from damaged npy headers."""


@dataclass(frozen=True)
class StoredArray:
    """An array in a file whose header has been read and fits the file's size. `member` is None for .npy files."""

    file: StrPath
    member: str | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def read(self) -> Array:
        """The contents. Raises CalibrationError naming file and array; OSError when the file is gone."""
        with open(self.file, "rb") as stream, _readable(self.file, self.member):
            if self.member is None:
                return _contents(stream, os.fstat(stream.fileno()).st_size)
            with zipfile.ZipFile(stream) as archive:
                info = archive.getinfo(f"{self.member}.npy")
                with archive.open(info) as member:
                    return _contents(member, info.file_size)


def stored_arrays(path: StrPath) -> dict[str, StoredArray]:
    """The arrays of an .npz by name, or the one of an .npy under "".

    Raises:
        CalibrationError: neither of the two, an array that is not numeric, or none at all.
        OSError: the file cannot be opened.
    """
    with open(path, "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            remedy = "save it as a file first"
            raise CalibrationError("this is a pipe or a device, which cannot be read twice", file=path, remedy=remedy)
        if stream.read(len(MAGIC)) == MAGIC:
            stream.seek(0)
            with _readable(path, None):
                shape, _, dtype = _header(stream, os.fstat(stream.fileno()).st_size)
            return {"": StoredArray(path, None, shape, dtype)}
        stream.seek(0)
        found = _npz_arrays(path, stream)
    if not found:
        raise CalibrationError("the file holds no array", file=path, remedy="save one array per network input")
    return found


def _npz_arrays(path: StrPath, stream: IO[bytes]) -> dict[str, StoredArray]:
    found: dict[str, StoredArray] = {}
    with _readable(path, ""), zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            with _readable(path, name):
                if name == info.filename:
                    raise ValueError("its name does not end in .npy")
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError(f"compression method {info.compress_type} is not numpy's")
                with archive.open(info) as member:
                    shape, _, dtype = _header(member, info.file_size)
            found[name] = StoredArray(path, name, shape, dtype)
    return found


@contextmanager
def _readable(path: StrPath, name: str | None) -> Iterator[None]:
    """Turn what damaged files cause into one error; `name` is the array's, "" for the .npz itself, None for an .npy."""
    try:
        yield
    except _UNREADABLE as error:
        kind = "an npy file of numbers" if name is None else "an npz file"
        what = f"array '{name}' cannot be read" if name else f"not {kind}"
        remedy = "write it with numpy.save, numbers only"
        if name is not None:
            remedy = "write it with numpy.savez, numeric arrays only"
        raise CalibrationError(f"{what} ({_one_line(error)})", file=path, remedy=remedy) from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """(shape, column-major, dtype) of an npy of `size` bytes; agrees with the size, so reading allocates no more."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"npy version {version[0]}.{version[1]} is not supported")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype.hasobject or dtype.kind not in "fiub":
        raise ValueError(f"it holds {dtype}, not numbers")
    count = 1
    for dimension in shape:
        count *= int(dimension)
    if min(shape, default=0) < 0 or count * dtype.itemsize != size - stream.tell():
        raise ValueError("its size does not fit its header")
    return tuple(shape), fortran, dtype


def _contents(stream: IO[bytes], size: int) -> Array:
    shape, fortran, dtype = _header(stream, size)
    flat = np.frombuffer(stream.read(), dtype, int(np.prod(shape, dtype=np.int64)))
    return flat.reshape(shape, order="F" if fortran else "C")
