"""Opening model files: which one holds the structure, which the weights, text or binary."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import DecodeError

from bmcompiler.errors import FileFormatError, UsageError
from bmcompiler.files.store import StrPath, map_file
from bmcompiler.frontends.caffe import caffe_pb2
from bmcompiler.frontends.caffe.textformat import LayerNotes, parse_net

_TEXT_SUFFIXES = frozenset({".prototxt", ".pbtxt", ".txt"})
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\v"))


@dataclass
class NetFile:
    """The structure of a net as the file states it. `notes` is empty, or has one entry per layer."""

    path: Path
    net: caffe_pb2.NetParameter
    notes: list[LayerNotes] = field(default_factory=list)


def order_files(first: StrPath, second: StrPath | None) -> tuple[Path, Path | None]:
    """(structure, weights) of files given in either order; a binary file alone is both."""
    model, weights = Path(first), Path(second) if second is not None else None
    if weights is None:
        return model, None if is_text(model) else model
    if not is_text(model) and is_text(weights):
        return weights, model
    if is_text(model) and is_text(weights) and model.suffix == weights.suffix == ".prototxt":
        raise UsageError(f"{weights} is a second prototxt", file=model, remedy="give one .prototxt and one .caffemodel")
    return model, weights


def read_net(path: Path) -> NetFile:
    """Read a NetParameter, text or binary.

    Raises:
        FileFormatError: unreadable, truncated or of another kind; for text the line is named.
    """
    data = read_bytes(path)
    if _looks_like_text(path, data):
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise FileFormatError(f"line {line}: not UTF-8 text ({error.reason})", file=path) from None
        parsed = parse_net(text, path)
        found = NetFile(path, parsed.net, parsed.notes)
    else:
        net = caffe_pb2.NetParameter()
        parse_binary(net, data, path)
        found = NetFile(path, net)
    _require_layers(found)
    return found


def read_bytes(path: Path) -> bytes:
    """Content of a file. Raises FileFormatError when it cannot be read or is empty."""
    try:
        return bytes(map_file(path))
    except OSError as error:
        raise FileFormatError(f"cannot be read: {error.strerror or error}", file=path) from None


def parse_binary(message: caffe_pb2.NetParameter, data: bytes, path: Path) -> None:
    """Fill `message`. Raises FileFormatError when the bytes are not one (cut off, or another format)."""
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise FileFormatError(
            "is not a Caffe model: neither prototxt text nor a complete binary NetParameter",
            file=path,
            remedy="check that the file was downloaded completely",
        ) from None


def is_text(path: Path) -> bool:
    """Whether the file holds text: by suffix, else by a look at its first bytes."""
    return _looks_like_text(path, b"" if path.suffix in _TEXT_SUFFIXES else read_bytes(path)[:4096])


def _looks_like_text(path: Path, data: bytes) -> bool:
    if path.suffix in _TEXT_SUFFIXES:
        return True
    head = data[:4096]
    if head.translate(None, _CONTROL) != head:
        return False
    try:
        head[:-4].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 8  # a character cut by the end of the sample
    return True


def _require_layers(found: NetFile) -> None:
    if not found.net.layer and not found.net.layers:
        raise FileFormatError("holds no layer", file=found.path, remedy="give the deploy .prototxt of a Caffe net")
