"""Reading the model file: size, protobuf, opsets, and that it holds a graph at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.frontends.onnx.large_tensors import Span, split_file

OLDEST_OPSET = 7
_MAX_BYTES = 2**31 - 1


def read_model(path: str | os.PathLike[str]) -> tuple[onnx.ModelProto, Mapping[int, Span]]:
    """Parse a model file; the raw data of its large initializers stays there, by index of the initializer.

    Raises FileFormatError when it cannot be read or is not an ONNX model.
    """
    file = Path(path)
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise FileFormatError("is larger than 2 GB", file=path, remedy="save its weights as external data")
        data, spans = split_file(file)
    except OSError as error:
        raise FileFormatError(f"cannot be read: {error.strerror}", file=path) from None
    return parse_model(data, path), spans


def parse_model(data: bytes, file: object) -> onnx.ModelProto:
    """A model of its bytes. Raises FileFormatError, which names `file`, when they are none."""
    if not data:
        raise FileFormatError("is empty", file=file)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError):
        raise FileFormatError(
            "is not an ONNX model (protobuf data is damaged or of another kind)",
            file=file,
            remedy="check that the file was copied completely, and that it is a .onnx model",
        ) from None
    return model


def check_model(model: onnx.ModelProto) -> dict[str, int]:
    """Opset version by domain; the default domain is "".

    Raises FileFormatError without a graph or opset, UnsupportedError for opsets outside the supported range.
    """
    if not model.HasField("graph") or not model.graph.output:
        raise FileFormatError("the network holds no graph with outputs")
    _check_names(model.graph)
    opsets: dict[str, int] = {}
    for entry in model.opset_import:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        opsets[domain] = entry.version
    if not opsets:
        raise FileFormatError("names no opset version")
    current = onnx.defs.onnx_opset_version()
    version = opsets.setdefault("", current)
    if not OLDEST_OPSET <= version <= current:
        raise UnsupportedError(
            f"opset {version} is not supported. Supported: {OLDEST_OPSET} to {current}",
            remedy="convert the model with onnx.version_converter.convert_version",
        )
    if model.graph.sparse_initializer:
        raise UnsupportedError("sparse initializers are not supported", remedy="save the model with dense initializers")
    return opsets


def _check_names(graph: onnx.GraphProto) -> None:
    """Raises FileFormatError for names that are not text: protobuf hands those out as bytes, or fails on access."""
    try:
        names = [name for node in graph.node for name in (node.name, node.op_type, node.domain)]
        names += [name for node in graph.node for name in (*node.input, *node.output)]
        names += [attribute.name for node in graph.node for attribute in node.attribute]
        names += [item.name for items in (graph.input, graph.output, graph.initializer) for item in items]
        sound = all(isinstance(name, str) for name in names)
    except UnicodeDecodeError:
        sound = False
    if not sound:
        raise FileFormatError("holds a name that is not UTF-8 text")
