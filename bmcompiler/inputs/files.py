"""Samples from one .npz or .npy file, or from a folder of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bmcompiler.errors import CalibrationError
from bmcompiler.inputs.source import InputData, Named, Samples, Source
from bmcompiler.inputs.stored import StoredArray, StrPath, stored_arrays
from bmcompiler.numeric.arrays import Array, Ints
from bmcompiler.spelling import spelled

_UNNAMED = "arr_0"
"""What numpy.savez calls an array without a name."""


class FileSource(Source):
    """One file, read whole.

    .npz: one array per input under the input's name, samples on axis 0; for a net with one input, the array may also
    be the only one and unnamed (`numpy.savez(path, array)`).
    .npy: for nets with one input; all samples, or one sample without the axis of samples.
    """

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)
        self.arrays = {name: stored.read() for name, stored in stored_arrays(path).items()}

    def bind(self, inputs: Sequence[Named]) -> InputData:
        arrays: Mapping[str, Array] = self.arrays
        if "" in arrays:
            arrays = {_sole(inputs, self.path).name: _with_sample_axis(arrays[""], inputs[0])}
        elif list(arrays) == [_UNNAMED] and len(inputs) == 1:
            arrays = {inputs[0].name: arrays[_UNNAMED]}
        count = max((len(array) for array in arrays.values() if array.ndim), default=0)
        return InputData(arrays, self.path, f"{counted(count, 'sample')} from {self.path}")


class ArraySource(Source):
    """One array for a net with one input: all samples, or one sample without the axis of samples."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def bind(self, inputs: Sequence[Named]) -> InputData:
        if len(inputs) != 1:
            raise CalibrationError(
                f"one array was given, and the network has {len(inputs)} inputs",
                remedy=f"give one array for each by name: {', '.join(each.name for each in inputs)}",
            )
        return InputData({inputs[0].name: _with_sample_axis(self._array, inputs[0])})


class FolderSource(Source):
    """The .npy and .npz files of a folder in the order of their names, read when needed; subfolders are not visited.

    Each file is one sample, or several on axis 0 (one axis more). Nets with one input take .npy files, or .npz files
    with the input's name. Nets with several inputs take .npz files with one array per input, or .npy files named like
    the inputs, each with all samples.
    """

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)
        names = sorted(entry.name for entry in os.scandir(path) if _is_array_file(entry))
        if not names:
            raise CalibrationError(
                "the folder holds no .npy or .npz file",
                file=path,
                remedy=f"save samples with numpy.save, or use {spelled('images')} for pictures",
            )
        self.files = [self.path / name for name in names]

    def bind(self, inputs: Sequence[Named]) -> InputData:
        by_stem = {file.stem: file for file in self.files if file.suffix == ".npy"}
        if len(inputs) > 1 and set(by_stem) == {each.name for each in inputs} and len(by_stem) == len(self.files):
            arrays: dict[str, Array | Samples] = {
                each.name: _FileSamples([(stored_arrays(by_stem[each.name])[""], False)]) for each in inputs
            }
        else:
            contents = [stored_arrays(file) for file in self.files]
            arrays = {each.name: self._samples(each, inputs, contents) for each in inputs}
        count = max(map(len, arrays.values()), default=0)
        files = counted(len(self.files), "file")
        return InputData(arrays, self.path, f"{counted(count, 'sample')} in {files} of {self.path}")

    def _samples(
        self, wanted: Named, inputs: Sequence[Named], contents: Sequence[Mapping[str, StoredArray]]
    ) -> Samples:
        parts: list[tuple[StoredArray, bool]] = []
        for file, arrays in zip(self.files, contents):
            name = wanted.name
            if "" in arrays:
                _sole(inputs, file)
                name = ""
            elif len(inputs) == 1 and list(arrays) == [_UNNAMED]:
                name = _UNNAMED
            if name not in arrays:
                raise CalibrationError(
                    f"no array is called '{name}' (found: {', '.join(arrays)})",
                    file=file,
                    remedy=f"save one array per network input: {', '.join(each.name for each in inputs)}",
                )
            stored = arrays[name]
            one = _is_one_sample(stored.shape, wanted)
            sample = stored.shape if one else stored.shape[1:]
            if not stored.shape or (parts and sample != _sample_shape(*parts[0])):
                before = f", the first file {list(_sample_shape(*parts[0]))}" if parts else ""
                raise CalibrationError(
                    f"its samples have shape {list(sample)}{before}; input '{wanted.name}' takes "
                    f"{list(wanted.shape[1:])}",
                    file=file,
                )
            parts.append((stored, one))
        return _FileSamples(parts)


class _FileSamples(Samples):
    """One input's samples over several files, each (array, is one sample); the file read last is kept."""

    def __init__(self, parts: Sequence[tuple[StoredArray, bool]]) -> None:
        self._parts = parts
        self._ends = np.cumsum([1 if one else stored.shape[0] for stored, one in parts])
        self._kept: tuple[int, Array] | None = None
        self.shape = (int(self._ends[-1]), *_sample_shape(*parts[0]))
        self.dtype: np.dtype[Any] = np.result_type(*(stored.dtype for stored, _ in parts))

    def take(self, indices: Sequence[int] | Ints) -> Array:
        wanted = np.asarray(indices, np.int64)
        out = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        owners = np.searchsorted(self._ends, wanted, side="right")
        for owner in dict.fromkeys(owners.tolist()):
            stored, one = self._parts[owner]
            rows = owners == owner
            contents = self._read(owner)
            if contents.shape != stored.shape:
                raise CalibrationError("the file changed while it was used", file=stored.file)
            first = self._ends[owner] - (1 if one else len(contents))
            out[rows] = contents if one else contents[wanted[rows] - first]
        return out

    def _read(self, owner: int) -> Array:
        if self._kept is None or self._kept[0] != owner:
            self._kept = (owner, self._parts[owner][0].read())
        return self._kept[1]


def counted(number: int, what: str) -> str:
    """A count in words: "1 sample", "1,000 samples"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _is_array_file(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith((".npy", ".npz")) and not entry.name.startswith(".") and entry.is_file()


def _sole(inputs: Sequence[Named], file: Path) -> Named:
    if len(inputs) != 1:
        raise CalibrationError(
            f"an .npy file has no names, and the network has {len(inputs)} inputs",
            file=file,
            remedy=f"save one .npz with the arrays {', '.join(each.name for each in inputs)}",
        )
    return inputs[0]


def _is_one_sample(shape: tuple[int, ...], wanted: Named) -> bool:
    return len(shape) == len(wanted.shape) - 1


def _with_sample_axis(array: Array, wanted: Named) -> Array:
    return array[None] if _is_one_sample(array.shape, wanted) else array


def _sample_shape(stored: StoredArray, one: bool) -> tuple[int, ...]:
    return stored.shape if one else stored.shape[1:]
