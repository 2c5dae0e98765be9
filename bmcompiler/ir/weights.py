"""Weights live beside the IR: key -> array, saved as an uncompressed `.npz` that is memory-mapped when read back."""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bmcompiler.errors import FileFormatError

if TYPE_CHECKING:
    import numpy as np

_LOCAL_HEADER = struct.Struct("<26xHH")  # file name length, extra field length of a zip member's local header


class Weights(MutableMapping[str, "np.ndarray"]):
    """Arrays by key; the digest of each is computed once and forgotten when the key is set again."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        self._digests: dict[str, str] = {}

    def __getitem__(self, key: str) -> np.ndarray:
        return self._arrays[key]

    def __setitem__(self, key: str, array: np.ndarray) -> None:
        self._arrays[key] = array
        self._digests.pop(key, None)

    def __delitem__(self, key: str) -> None:
        del self._arrays[key]
        self._digests.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def add(self, name: str, array: np.ndarray) -> str:
        """Store under `name`, or `name.1`, `name.2`... when that is taken by another array. Returns the key."""
        key, n = name, 0
        while key in self._arrays and self._arrays[key] is not array:
            n += 1
            key = f"{name}.{n}"
        self[key] = array
        return key

    def digest(self, key: str) -> str:
        """sha256 over element type, shape and bytes, in hex."""
        if key not in self._digests:
            import numpy as np

            array = np.ascontiguousarray(self._arrays[key])
            head = f"{array.dtype.str}{list(array.shape)}".encode()
            self._digests[key] = hashlib.sha256(head + array.tobytes()).hexdigest()
        return self._digests[key]

    def save(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        import numpy as np

        np.savez(file, **self._arrays)  # type: ignore[arg-type]

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Weights:
        """Map the arrays of an `.npz`. Raises FileFormatError for anything but plain numeric arrays."""
        weights = Weights()
        try:
            with zipfile.ZipFile(path) as archive:
                for info in archive.infolist():
                    weights[info.filename.removesuffix(".npy")] = _read_member(Path(path), archive, info)
        except (zipfile.BadZipFile, ValueError, EOFError, struct.error, OverflowError, NotImplementedError) as error:
            raise FileFormatError(f"not a readable weights file ({error})", file=path) from error
        return weights


def _read_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    import numpy as np

    if info.compress_type != zipfile.ZIP_STORED:
        with archive.open(info) as stream:
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
    with open(path, "rb") as stream:
        stream.seek(info.header_offset)
        name_length, extra_length = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
        stream.seek(name_length + extra_length, os.SEEK_CUR)
        start = stream.tell()
        version = np.lib.format.read_magic(stream)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = reader(stream)
        if dtype.hasobject:
            raise ValueError(f"array {info.filename} holds Python objects")
        nbytes = int(np.prod(shape, dtype=object)) * dtype.itemsize if shape else dtype.itemsize
        if stream.tell() - start + nbytes != info.file_size:
            raise ValueError(f"array {info.filename} is truncated")
        if not nbytes or fortran or not shape:
            stream.seek(start)
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
        return np.memmap(path, dtype=dtype, mode="r", offset=stream.tell(), shape=shape)
