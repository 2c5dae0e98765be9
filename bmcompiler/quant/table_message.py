"""Calibration tables as the vendor's protobuf messages, binary and text (bm1880.md 11.1).

The dataclasses of `bmcompiler.quant.table` use the messages' field names, so one loop converts all of them both ways.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from bmcompiler.errors import CalibrationError
from bmcompiler.files.store import StrPath
from bmcompiler.quant import calibration_table_pb2 as pb
from bmcompiler.quant import table as t

REMEDY = "pass the table that the calibration tool wrote, whole and unedited"

# Field name -> dataclass, for fields that are messages.
NESTED: dict[str, type] = {
    "blob_param": t.BlobParameter,
    "convolution_param": t.ConvolutionParameter,
    "inner_product_param": t.InnerProductParameter,
    "pooling_param": t.PoolingParameter,
    "relu_param": t.ReLUParameter,
    "prelu_param": t.PReLUParameter,
    "concat_param": t.ConcatParameter,
}


def parse_binary(data: bytes, path: StrPath) -> t.CalibrationTable:
    """Table from a `.pb2` file. Raises CalibrationError when it is malformed."""
    try:
        message = pb.NetCalibrationParameter.FromString(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise CalibrationError(f"not a calibration table ({error})", file=path, remedy=REMEDY) from error
    return _table(message, path)


def parse_text(text: str, path: StrPath) -> t.CalibrationTable:
    """Table from a `.prototxt` file; fields that newer tools added are skipped. Raises CalibrationError."""
    message = pb.NetCalibrationParameter()
    try:
        text_format.Parse(text, message, allow_unknown_field=True)
    except text_format.ParseError as error:
        line = f"line {error.GetLine()}: " if error.GetLine() else ""
        reason = str(error).split(" : ", 1)[-1]
        raise CalibrationError(f"{line}{reason}", file=path, remedy=REMEDY) from error
    except (RecursionError, ValueError) as error:  # nested beyond measure; numbers or escapes out of range
        raise CalibrationError(f"the text cannot be read ({error})", file=path, remedy=REMEDY) from error
    return _table(message, path)


def to_binary(table: t.CalibrationTable) -> bytes:
    """Content of a `.pb2` file."""
    return _message(table).SerializeToString(deterministic=True)


def to_text(table: t.CalibrationTable) -> str:
    """Content of a `.prototxt` file."""
    return text_format.MessageToString(_message(table))


def _table(message: pb.NetCalibrationParameter, path: StrPath) -> t.CalibrationTable:
    layers: list[t.LayerEntry] = []
    seen: set[str] = set()
    for index, entry in enumerate(message.layer):
        name = entry.name
        if not isinstance(name, str) or not name:
            raise CalibrationError(f"layer {index} has no readable name", file=path, remedy=REMEDY)
        if name in seen:
            raise CalibrationError("the layer occurs twice", file=path, layer=name, remedy=REMEDY)
        seen.add(name)
        layers.append(_layer(entry, name, path))
    if not layers or not isinstance(message.name, str):
        what = "the net name is not text" if layers else "it holds no layer"
        raise CalibrationError(f"not a calibration table: {what}", file=path, remedy=REMEDY)
    return t.CalibrationTable(message.name, tuple(layers))


def _layer(entry: pb.LayerCalibrationParameter, name: str, path: StrPath) -> t.LayerEntry:
    for blob in entry.blob_param:
        if not isinstance(blob.name, str) or not blob.name:
            raise CalibrationError("an output has no readable name", file=path, layer=name, remedy=REMEDY)
    layer: t.LayerEntry = _read(t.LayerEntry, entry)
    for value in (*layer.threshold_y, *(blob.threshold_y for blob in layer.blob_param)):
        t.check_threshold(value, f"layer '{name}'", path, zero=True)
    return layer


def _read(kind: type, message: Any) -> Any:
    """A dataclass from its message. A field whose default is a tuple is repeated; absent fields keep their default."""
    values: dict[str, object] = {}
    for field in fields(kind):
        value = getattr(message, field.name)
        nested = NESTED.get(field.name)
        if field.default == ():
            values[field.name] = tuple(_read(nested, item) for item in value) if nested else tuple(value)
        elif field.default is MISSING:
            values[field.name] = value
        elif message.HasField(field.name):
            values[field.name] = _read(nested, value) if nested else value
    return kind(**values)


def _message(table: t.CalibrationTable) -> pb.NetCalibrationParameter:
    message = pb.NetCalibrationParameter()
    if table.name:
        message.name = table.name
    for layer in table.layers:
        _write(message.layer.add(), layer)
    return message


def _write(message: Message, entry: Any) -> None:
    for field in fields(entry):
        value = getattr(entry, field.name)
        if value is None:
            continue
        place = getattr(message, field.name)
        if field.name not in NESTED:
            if isinstance(value, tuple):
                place.extend(value)
            else:
                setattr(message, field.name, value)
        elif isinstance(value, tuple):
            for item in value:
                _write(place.add(), item)
        else:
            place.SetInParent()
            _write(place, value)
