"""Trained weights by layer name.

Blob values are taken as raw bytes: packed floats lie in the file exactly as numpy wants them, so a copy of the schema
in which `BlobProto.data` is `bytes` makes reading a large caffemodel a matter of slicing. Files whose floats are not
packed (nobody's Caffe writes them, the format allows them) go through the ordinary schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from bmcompiler.errors import FileFormatError
from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.files import is_text, parse_binary, read_bytes, read_net

if TYPE_CHECKING:
    from bmcompiler.numeric.arrays import Floats

MAX_DIM = 2**31 - 1
_RAW_TYPES = {0: "<f8", 1: "<f4", 2: "<f2", 3: "<i4", 4: "<u4"}  # caffe_pb2.Type
_PACKED = {"data": "<f4", "double_data": "<f8"}


@dataclass(frozen=True)
class Blob:
    """One parameter tensor: the shape the file states and its values as a flat float32 array."""

    shape: tuple[int, ...]
    values: Floats


class BlobError(ValueError):
    """A blob whose values do not fit its shape."""


def read_weights(path: Path) -> dict[str, list[Blob]]:
    """Layer name -> blobs, for layers that have any. Of two layers with one name the later wins, as in Caffe.

    Raises:
        FileFormatError: unreadable file, or a blob whose values do not fit its shape; names the layer.
    """
    weights: dict[str, list[Blob]] = {}
    for layer in _layers(path):
        name, blobs = _name_and_blobs(layer)
        if not blobs:
            continue
        if not isinstance(name, str):
            raise FileFormatError(f"layer name {name!r} is not UTF-8 text", file=path)
        try:
            weights[name] = [_blob(b, i) for i, b in enumerate(blobs)]
        except BlobError as error:
            raise FileFormatError(str(error), file=path, layer=name) from None
    return weights


def _layers(path: Path) -> Iterable[Any]:
    data = read_net(path).net.SerializeToString() if is_text(path) else read_bytes(path)
    net = packed_net()()
    parse_binary(net, data, path)
    layers = [*net.layer, *net.layers]
    if not layers:
        raise FileFormatError("holds no layer", file=path, remedy="give the .caffemodel of the net")
    if not all(_readable(blob) for layer in layers for blob in _name_and_blobs(layer)[1]):
        plain = caffe_pb2.NetParameter()
        parse_binary(plain, data, path)
        return [*plain.layer, *plain.layers]
    return layers


def _name_and_blobs(layer: Any) -> tuple[Any, Any]:
    if layer.DESCRIPTOR.name == "V1LayerParameter" and layer.HasField("layer"):
        return layer.layer.name, layer.layer.blobs or layer.blobs
    return layer.name, layer.blobs


def _readable(blob: Any) -> bool:
    """False when the values are not packed: they are then unknown fields of the fast schema."""
    return bool(blob.data or blob.double_data or blob.HasField("raw_data")) or 0 in _shape(blob)


def _blob(blob: Any, index: int) -> Blob:
    shape = _shape(blob)
    if any(d < 0 or d > MAX_DIM for d in shape):
        raise BlobError(f"blob {index} has the impossible shape {list(shape)}")
    values = _values(blob, index)
    if not shape and values.size != 1:
        shape = (values.size,)
    if values.size != prod(shape):
        raise BlobError(f"blob {index} holds {values.size} values, its shape {list(shape)} needs {prod(shape)}")
    return Blob(shape, values)


def _shape(blob: Any) -> tuple[int, ...]:
    if blob.HasField("shape"):
        return tuple(blob.shape.dim)
    if any(blob.HasField(name) for name in ("num", "channels", "height", "width")):
        return (blob.num, blob.channels, blob.height, blob.width)
    return ()


def _values(blob: Any, index: int) -> Floats:
    for name, dtype in _PACKED.items():
        chunks = getattr(blob, name)
        if len(chunks):
            if not isinstance(chunks[0], bytes):
                return np.array(chunks, dtype=dtype).astype(np.float32)
            return _from_bytes(chunks[0] if len(chunks) == 1 else b"".join(chunks), dtype, index)
    return _from_bytes(blob.raw_data, _RAW_TYPES[blob.raw_data_type if blob.HasField("raw_data_type") else 1], index)


def _from_bytes(data: bytes, dtype: str, index: int) -> Floats:
    if len(data) % np.dtype(dtype).itemsize:
        raise BlobError(f"blob {index} is cut off: {len(data)} bytes are no whole number of {dtype[1:]} values")
    with np.errstate(over="ignore", invalid="ignore"):
        return np.frombuffer(data, dtype).astype(np.float32, copy=False)


@cache
def packed_net() -> Any:
    """NetParameter of the schema copy, with `data` and `double_data` of blobs as the bytes of packed floats.

    (Lists of bytes: a writer may split a packed run.)
    """
    file = descriptor_pb2.FileDescriptorProto()
    caffe_pb2.DESCRIPTOR.CopyToProto(file)
    file.name = "bmcompiler/caffe_weights.proto"
    package, file.package = file.package, file.package + ".weights"
    for message in file.message_type:
        _rename_types(message, f".{package}.", f".{file.package}.")
        if message.name == "BlobProto":
            for spec in message.field:
                if spec.name in _PACKED:
                    spec.type = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
                    spec.options.ClearField("packed")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.NetParameter"))


def _rename_types(message: descriptor_pb2.DescriptorProto, old: str, new: str) -> None:
    for spec in message.field:
        if spec.type_name.startswith(old):
            spec.type_name = new + spec.type_name[len(old) :]
    for nested in message.nested_type:
        _rename_types(nested, old, new)
