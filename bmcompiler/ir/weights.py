"""Weights live beside the IR: key -> array, saved as an uncompressed `.npz` that is memory-mapped when read back."""

from __future__ import annotations

import hashlib
import os
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, MutableMapping
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from bmcompiler.errors import FileFormatError
from bmcompiler.ir.types import FROM_NUMPY, numpy_dtype

if TYPE_CHECKING:
    import numpy as np

_LOCAL_HEADER = struct.Struct("<26xHH")  # file name length, extra field length of a zip member's local header
_LOCAL_HEADER_SIZE = 30
_ZIP64_EXTRA_SIZE = 20
_ALIGNMENT = 64
_SAMPLED = 64
_BF16 = "|V2"
"""How numpy reads bf16, which it does not know, from the header of an array."""
_PADDING_ID = 0xD935  # extra field that other tools, too, use for alignment and skip
_UNSAFE_IN_NAMES = re.compile("[%\0\\ud800-\\udfff]")
_UNREADABLE = (
    zipfile.BadZipFile,
    ValueError,  # also UnicodeDecodeError, and what numpy says of array headers
    EOFError,
    struct.error,
    OverflowError,
    NotImplementedError,  # compression methods that zipfile lacks
    RuntimeError,  # encrypted members
    MemoryError,
    OSError,  # seeking to where no byte can be
    SyntaxError,
    tokenize.TokenError,
    zlib.error,
)


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

            array = self._arrays[key]
            state = hashlib.sha256(f"{array.dtype.str}{list(array.shape)}".encode())  # bf16 is "<V2"
            state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            self._digests[key] = state.hexdigest()
        return self._digests[key]

    def sample(self, key: str) -> bytes:
        """A few elements from all over an array: arrays of one type that differ in them need no digest."""
        import numpy as np

        elements = np.ascontiguousarray(self._arrays[key]).reshape(-1)
        return elements[:: max(1, elements.size // _SAMPLED)].tobytes()

    def save(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write an `.npz` that `numpy.load` reads, too. Equal weights give equal bytes. bf16 are pairs of bytes there.

        Array data starts at multiples of 64 bytes in the file, so that mapped arrays are aligned for BLAS. In member
        names, characters that zip files cannot hold (and %) are written as %XX.
        """
        import numpy as np

        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for key, array in self._arrays.items():
                name = _UNSAFE_IN_NAMES.sub(_percent, key) + ".npy"
                info = zipfile.ZipInfo(name)  # its date is fixed
                size = array.nbytes + 4096
                info.extra = _padding(archive, name, size)
                info.file_size = size
                with archive.open(info, "w", force_zip64=size > zipfile.ZIP64_LIMIT) as stream:
                    np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Weights:
        """Map the arrays of an `.npz`.

        Raises FileFormatError for anything but plain numeric arrays, OSError when the file cannot be opened.
        """
        weights = Weights()
        with open(path, "rb") as stream:
            try:
                with zipfile.ZipFile(stream) as archive:
                    for info in archive.infolist():
                        name = unquote_to_bytes(info.filename.removesuffix(".npy")).decode("utf-8", "surrogateescape")
                        weights[name] = _read_member(Path(path), archive, info)
            except _UNREADABLE as error:
                raise FileFormatError(f"not a readable weights file ({error})", file=path) from error
        return weights


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))


def _padding(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """Extra field that moves the member's data to the alignment."""
    start = archive.fp.tell() + _LOCAL_HEADER_SIZE + len(name.encode()) + 4  # type: ignore[union-attr]
    if size > zipfile.ZIP64_LIMIT:
        start += _ZIP64_EXTRA_SIZE
    count = -start % _ALIGNMENT
    return struct.pack("<HH", _PADDING_ID, count) + bytes(count)


def _read_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array: mapped where it lies uncompressed in row-major order, else read. Raises one of `_UNREADABLE`."""
    import numpy as np

    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"array {info.filename} is compressed by method {info.compress_type}")
    with archive.open(info) as member:  # zipfile checks the member's place in the file here
        version = np.lib.format.read_magic(member)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"array {info.filename} has format version {version}")
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = reader(member)
        bare = dtype.str == _BF16
        if bare:
            dtype = numpy_dtype("bf16")
        if dtype.name not in FROM_NUMPY or any(type(d) is not int or d < 0 for d in shape):
            raise ValueError(f"array {info.filename} is not a plain numeric array")
        start, nbytes = member.tell(), prod(shape) * dtype.itemsize
        if start + nbytes != info.file_size:
            raise ValueError(f"array {info.filename} has {info.file_size - start} bytes of data, not {nbytes}")
    if info.compress_type == zipfile.ZIP_STORED and nbytes and shape and not fortran and dtype.isnative:
        with open(path, "rb") as stream:
            stream.seek(info.header_offset)
            name_length, extra_length = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER_SIZE))
        offset = info.header_offset + _LOCAL_HEADER_SIZE + name_length + extra_length + start
        return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)
    with archive.open(info) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
    if bare:
        return np.asarray(array, order="C").view(dtype)
    return np.asarray(array, dtype=dtype.newbyteorder("="), order="C")
