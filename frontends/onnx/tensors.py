"""TensorProto -> numpy, with every length checked before anything is allocated.

External data is opened only below the model's folder: absolute paths, "..", and links that lead outside are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import onnx

from bmcompiler.errors import FileFormatError, ShapeError, UnsupportedError
from bmcompiler.frontends.onnx.large_tensors import Span
from bmcompiler.ir import TensorType
from bmcompiler.ir.types import FROM_NUMPY

_T = onnx.TensorProto
_MAX_ELEMENTS = 2**34
_MAX_RANK = 32
# ONNX element type -> (numpy type, field that holds the elements when raw_data is empty)
ELEMENT_TYPES: dict[int, tuple[np.dtype[Any], str]] = {
    _T.FLOAT: (np.dtype("<f4"), "float_data"),
    _T.DOUBLE: (np.dtype("<f8"), "double_data"),
    _T.FLOAT16: (np.dtype("<f2"), "int32_data"),
    _T.INT8: (np.dtype("i1"), "int32_data"),
    _T.UINT8: (np.dtype("u1"), "int32_data"),
    _T.INT16: (np.dtype("<i2"), "int32_data"),
    _T.UINT16: (np.dtype("<u2"), "int32_data"),
    _T.INT32: (np.dtype("<i4"), "int32_data"),
    _T.UINT32: (np.dtype("<u4"), "uint64_data"),
    _T.INT64: (np.dtype("<i8"), "int64_data"),
    _T.UINT64: (np.dtype("<u8"), "uint64_data"),
    _T.BOOL: (np.dtype("?"), "int32_data"),
}


NARROW = {"int4": np.dtype("i1"), "uint4": np.dtype("u1")}
"""Types of constants of 4 bits -> that of bytes which hold them. Only DequantizeLinear takes such constants."""


def element_name(code: int) -> str:
    """ONNX's own name of an element type code, for messages."""
    return str(_T.DataType.Name(code)) if code in _T.DataType.values() else str(code)


def numpy_type(code: int) -> np.dtype[Any]:
    """Raises UnsupportedError for element types that TensorOps do not have (strings, bfloat16, complex, 4-bit...)."""
    if code not in ELEMENT_TYPES:
        raise UnsupportedError(f"element type {element_name(code)} is not supported")
    return ELEMENT_TYPES[code][0]


def dtype_name(code: int) -> str:
    """Our name of an ONNX element type. Raises UnsupportedError as `numpy_type`."""
    return FROM_NUMPY[numpy_type(code).name]


def element_code(dtype: str) -> int:
    """ONNX's code of one of our element types."""
    return next(code for code, (kind, _) in ELEMENT_TYPES.items() if FROM_NUMPY[kind.name] == dtype)


def onnx_type(type: TensorType | None) -> onnx.TypeProto:
    """A tensor type as ONNX states it; an empty one for an absent tensor."""
    if type is None:
        return onnx.TypeProto()
    return onnx.helper.make_tensor_type_proto(element_code(type.dtype), type.shape)


def check_extent(what: str, shape: Sequence[int]) -> None:
    """Raises ShapeError for a tensor that nothing could hold."""
    if prod(shape) > _MAX_ELEMENTS or len(shape) > _MAX_RANK:
        raise ShapeError(f"'{what}' would be a tensor of shape {list(shape)[:_MAX_RANK]}, which is too large")


def to_array(tensor: onnx.TensorProto, folder: Path | None, span: Span | None = None) -> np.ndarray:
    """The elements of a tensor, read-only where they can be used in place.

    Args:
        tensor: as found in the model.
        folder: the model's folder, for external data; None for models that came without a path.
        span: its raw data, where that stayed in the model file.

    Raises:
        FileFormatError: the tensor's size and its data disagree, or its external data is missing or outside the folder.
        UnsupportedError: element type without a TensorOp type.
    """
    name = tensor.name or "unnamed"
    shape = tuple(tensor.dims)
    if any(d < 0 for d in shape) or len(shape) > _MAX_RANK:
        raise FileFormatError(f"tensor '{name}' has impossible dimensions {list(shape)[:_MAX_RANK]}")
    if tensor.data_type in (_T.INT4, _T.UINT4):
        pairs = _elements(tensor, name, (-(-prod(shape) // 2),), ELEMENT_TYPES[_T.UINT8], folder, span)
        return _of_pairs(pairs, prod(shape), tensor.data_type == _T.INT4).reshape(shape)
    return _elements(tensor, name, shape, _element_type(tensor, name), folder, span)


def _of_pairs(pairs: np.ndarray, count: int, signed: bool) -> np.ndarray:
    """Elements of 4 bits, the first of a byte in its low half, as numpy has them."""
    import ml_dtypes

    codes = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(-1)[:count]
    if signed:
        return ((codes ^ 8).astype(np.int8) - np.int8(8)).astype(ml_dtypes.int4)
    return codes.astype(ml_dtypes.uint4)


def _elements(
    tensor: onnx.TensorProto,
    name: str,
    shape: tuple[int, ...],
    kind: tuple[np.dtype[Any], str],
    folder: Path | None,
    span: Span | None,
) -> np.ndarray:
    """Those of a type that numpy has."""
    (dtype, field), count = kind, prod(shape)
    if tensor.data_location == _T.EXTERNAL:
        return _external(tensor, name, dtype, count, folder).reshape(shape)
    if span is not None:
        _check_size(name, shape, span.size, count * dtype.itemsize, "bytes")
        return span.read().view(dtype).reshape(shape)
    if tensor.HasField("raw_data"):
        _check_size(name, shape, len(tensor.raw_data), count * dtype.itemsize, "bytes")
        return np.frombuffer(tensor.raw_data, dtype).reshape(shape)
    values = getattr(tensor, field)
    _check_size(name, shape, len(values), count, "elements")
    return _from_field(values, dtype, name).reshape(shape)


def _element_type(tensor: onnx.TensorProto, name: str) -> tuple[np.dtype[Any], str]:
    if tensor.data_type == _T.UNDEFINED:
        raise FileFormatError(f"tensor '{name}' has no element type")
    if tensor.data_type not in ELEMENT_TYPES:
        raise UnsupportedError(f"tensor '{name}': element type {element_name(tensor.data_type)} is not supported")
    return ELEMENT_TYPES[tensor.data_type]


def _check_size(name: str, shape: tuple[int, ...], found: int, wanted: int, unit: str) -> None:
    if found != wanted:
        raise FileFormatError(f"tensor '{name}' of shape {list(shape)} needs {wanted} {unit}, but holds {found}")


def _from_field(values: Any, dtype: np.dtype[Any], name: str) -> np.ndarray:
    if dtype.kind == "f" and dtype.itemsize == 2:  # half floats travel as their bit patterns
        return _narrow(np.asarray(values, np.int64), np.dtype("<u2"), name).view(dtype)
    if dtype.kind == "f":
        return np.asarray(values, dtype)
    wide = np.asarray(values, np.uint64 if dtype.kind == "u" and dtype.itemsize >= 4 else np.int64)
    return _narrow(wide, dtype, name)


def _narrow(wide: np.ndarray, dtype: np.dtype[Any], name: str) -> np.ndarray:
    narrow = wide.astype(dtype)
    if not np.array_equal(narrow.astype(wide.dtype), wide):
        raise FileFormatError(f"tensor '{name}' holds values outside the range of its element type {dtype.name}")
    return narrow


# -- external data ------------------------------------------------------------------
def _external(tensor: onnx.TensorProto, name: str, dtype: np.dtype[Any], count: int, folder: Path | None) -> np.ndarray:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if not all(isinstance(text, str) for text in (*entries, *entries.values())):
        raise FileFormatError(f"external data of tensor '{name}': an entry is not UTF-8 text")
    path = _safe_path(entries.get("location", ""), name, folder)
    offset, size = _number(entries, "offset", name, 0), path.stat().st_size
    length = _number(entries, "length", name, count * dtype.itemsize)
    if length != count * dtype.itemsize:
        raise FileFormatError(
            f"tensor '{name}' of shape {list(tensor.dims)} needs {count * dtype.itemsize} bytes, "
            f"but its external data entry says {length}"
        )
    if offset + length > size:
        raise FileFormatError(
            f"external data of tensor '{name}' is truncated: bytes {offset} to {offset + length} of {path.name}, "
            f"which has {size}",
            remedy="copy the complete data file next to the model",
        )
    if not count:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, "r", offset, (count,))


def _number(entries: dict[str, str], key: str, name: str, default: int) -> int:
    text = entries.get(key, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise FileFormatError(f"external data of tensor '{name}': {key} is not a plain number: {text[:40]!r}")
    return int(text)


def _safe_path(location: str, name: str, folder: Path | None) -> Path:
    if folder is None:
        raise FileFormatError(
            f"tensor '{name}' is in an external file, but the model came without a path",
            remedy="import it by its file name",
        )
    parts = PurePosixPath(location).parts
    outside = PurePosixPath(location).is_absolute() or PureWindowsPath(location).drive or "\\" in location
    if not location or outside or ".." in parts or "\0" in location:
        raise FileFormatError(
            f"tensor '{name}' names external data outside the model's folder: {location!r}",
            remedy="keep the data file in the model's folder and name it by a relative path",
        )
    base = folder.resolve()
    path = (base / location).resolve()
    if not path.is_relative_to(base):
        raise FileFormatError(
            f"external data of tensor '{name}' ({location}) is a link that leads outside the model's folder",
            remedy="replace the link by the file itself",
        )
    if not path.is_file():
        raise FileFormatError(
            f"external data of tensor '{name}' is missing: {location}", remedy="copy the data file next to the model"
        )
    return path
