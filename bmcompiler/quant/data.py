"""Calibration data: an `.npz` with one array of real values per network input, samples on axis 0."""

from __future__ import annotations

import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.errors import CalibrationError
from bmcompiler.ir import Function, TensorType

Array = NDArray[Any]
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError),
    *(ValueError, KeyError, OverflowError, RuntimeError, SyntaxError, tokenize.TokenError),
)
"""What zipfile and numpy raise for damaged files; SyntaxError and TokenError come from damaged npy headers."""


class CalibrationData(Mapping[str, Array]):
    """Arrays by input name; `file` is what messages call the source."""

    def __init__(self, arrays: Mapping[str, Array], file: object = None) -> None:
        self._arrays = dict(arrays)
        self.file = file

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def load_data(path: str | os.PathLike[str]) -> CalibrationData:
    """Read all arrays of an `.npz`.

    Raises:
        CalibrationError: no readable npz of numeric arrays, or an empty one.
        OSError: the file cannot be opened.
    """
    arrays: dict[str, Array] = {}
    with open(path, "rb") as stream:
        name = ""
        try:
            with zipfile.ZipFile(stream) as archive:
                for info in archive.infolist():
                    name = info.filename.removesuffix(".npy")
                    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                        raise ValueError(f"compression method {info.compress_type} is not numpy's")
                    with archive.open(info) as member:
                        arrays[name] = _read_array(member, info.file_size)
        except _UNREADABLE as error:
            what = f"array '{name}' cannot be read" if name else "not an npz file"
            raise CalibrationError(
                f"{what} ({error})", file=path, remedy="write it with numpy.savez, numeric arrays only"
            ) from error
    if not arrays:
        raise CalibrationError("the file holds no array", file=path, remedy="save one array per network input")
    return CalibrationData(arrays, Path(path))


def _read_array(member: IO[bytes], size: int) -> Array:
    """An array of an npz member of `size` bytes; nothing is allocated before header and size agree."""
    version = np.lib.format.read_magic(member)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"npy version {version[0]}.{version[1]} is not supported")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(member)
    if dtype.hasobject or dtype.kind not in "fiub":
        raise ValueError(f"it holds {dtype}, not numbers")
    count = 1
    for dimension in shape:
        count *= int(dimension)
    if min(shape, default=0) < 0 or count * dtype.itemsize != size - member.tell():
        raise ValueError("its size does not fit its header")
    flat = np.frombuffer(member.read(), dtype, count)
    return flat.reshape(shape, order="F" if fortran else "C")


def check_data(function: Function, data: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of a net's inputs in input order and in the inputs' element types, each (samples, *input_shape[1:]).

    Raises CalibrationError naming file, array, what was found and what was expected.
    """
    file = getattr(data, "file", None)
    checked: dict[str, Array] = {}
    for name, argument in zip(function.input_names, function.arguments):
        if name not in data:
            raise CalibrationError(
                f"no array is called '{name}' (found: {', '.join(data) or 'none'})",
                file=file,
                remedy=f"save one array per network input: {', '.join(function.input_names)}",
            )
        checked[name] = _check_array(f"array '{name}'", np.asarray(data[name]), argument.type, file)
    unknown = [name for name in data if name not in checked]
    if unknown:
        raise CalibrationError(
            f"array '{unknown[0]}' belongs to no network input",
            file=file,
            remedy=f"remove or rename it; the inputs are: {', '.join(function.input_names)}",
        )
    counts = {name: len(array) for name, array in checked.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"'{name}' {count}" for name, count in counts.items())
        raise CalibrationError(f"the arrays have different numbers of samples: {shown}", file=file)
    return checked


def _check_array(what: str, array: Array, wanted: TensorType, file: object) -> Array:
    def fail(found: str, remedy: str | None = None) -> CalibrationError:
        return CalibrationError(f"{what} {found}", file=file, remedy=remedy)

    if array.dtype.kind not in "fiub":
        raise fail(f"holds {array.dtype}, expected numbers")
    sample = wanted.shape[1:]
    if array.ndim != max(wanted.rank, 1) or array.shape[1:] != sample:
        expected = ", ".join(["samples", *map(str, sample)])
        raise fail(
            f"has shape {list(array.shape)}, expected ({expected})",
            f"put the samples on axis 0, each shaped {list(sample)} as the network takes it",
        )
    if not array.size:
        raise fail("holds no sample", "give at least one sample; 100 or more are usual")
    if wanted.is_float:
        with np.errstate(over="ignore"):
            array = array.astype(wanted.numpy, copy=False)
        if not np.isfinite(array).all():
            raise fail(f"holds NaN, infinity or values beyond {wanted.dtype}", "remove the broken samples")
        if array[0].size > 1 and array.min() == array.max():
            raise fail(f"is constant ({array.flat[0]:g} everywhere)", "use real data of the kind the network will see")
        return array
    if array.dtype.kind == "f" and (not np.isfinite(array).all() or (array != np.trunc(array)).any()):
        raise fail(f"holds fractions, but the input takes whole numbers ({wanted.dtype})")
    if wanted.is_integer:
        limits = np.iinfo(wanted.numpy)
        if array.min() < limits.min or array.max() > limits.max:
            raise fail(f"holds values outside {limits.min}..{limits.max}, the range of the input ({wanted.dtype})")
    return array.astype(wanted.numpy)


def batches(data: Mapping[str, Array], sizes: Mapping[str, int]) -> Iterator[dict[str, Array]]:
    """The samples in steps of `sizes[name]` (one batch per input); the first samples fill up the last step."""
    first = next(iter(data), None)
    if first is None:
        return
    count = len(data[first])
    for step in range(-(-count // sizes[first])):
        yield {
            name: np.take(array, range(step * sizes[name], (step + 1) * sizes[name]), axis=0, mode="wrap")
            for name, array in data.items()
        }
