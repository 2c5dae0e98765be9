"""Calibration tables: the real magnitude of every tensor, and the vendor's per-layer integers.

Three kinds of file, told apart by content:

- text table (the default): one tensor per line, `name threshold`, `#` starts a comment line; a name with blanks or odd
  characters is written as a JSON string. Tables of newer vendor tools (`name threshold min max`) read as well;
- the vendor's protobuf, binary (`.pb2`) and text (`.prototxt`): bm1880.md 11.1.

A threshold is the real magnitude that maps to 128 (bm1880.md 11.2), above zero.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bmcompiler.errors import CalibrationError
from bmcompiler.files.kinds import TABLE
from bmcompiler.files.store import StrPath, atomic_output, check_regular

_LEAST, _LARGEST = 2.0**-126, 2.0**127
"""Normal numbers of float32, in which model files store thresholds."""
REMEDY = "write one 'name threshold' per line, or make the table again with bmnet-calibrate"


@dataclass(frozen=True)
class BlobParameter:
    """Threshold of one output of a layer; 0 = unknown."""

    name: str
    threshold_y: float
    right_shift_width: int | None = None


@dataclass(frozen=True)
class ReLUParameter:
    """Integer slopes for positive (gt) and negative (le) values: y = x * scale >> shift."""

    gt_scale: int | None = None
    le_scale: int | None = None
    gt_right_shift_width: int | None = None
    le_right_shift_width: int | None = None


@dataclass(frozen=True)
class PReLUParameter:
    """Integer slope for positive values, and the shift of the per-channel negative slopes."""

    gt_scale: int | None = None
    gt_right_shift_width: int | None = None
    le_right_shift_width: int | None = None


@dataclass(frozen=True)
class ConvolutionParameter:
    """Shifts of folded batch normalisation and scale, and the fused activation."""

    bn_right_shift_width: int | None = None
    scale_right_shift_width: int | None = None
    prelu_param: PReLUParameter | None = None
    relu_param: ReLUParameter | None = None


@dataclass(frozen=True)
class InnerProductParameter:
    """The fused activation."""

    prelu_param: PReLUParameter | None = None


@dataclass(frozen=True)
class PoolingParameter:
    """Present and empty on pooling layers."""


@dataclass(frozen=True)
class ConcatParameter:
    """Per-input rescaling of a concatenation."""

    right_shift_width: tuple[int, ...] = ()
    threshold_x_quantized: tuple[int, ...] = ()
    need_quantize_num: int | None = None


@dataclass(frozen=True)
class LayerEntry:
    """One layer of the table; field names and meaning as in the vendor's file (bm1880.md 11.1)."""

    name: str
    threshold_y: tuple[float, ...] = ()
    right_shift_width: int | None = None
    threshold_x_quantized: tuple[int, ...] = ()
    blob_param: tuple[BlobParameter, ...] = ()
    fusion_skipped: int | None = None
    bottom_unsigned: tuple[bool, ...] = ()
    top_unsigned: tuple[bool, ...] = ()
    convolution_param: ConvolutionParameter | None = None
    inner_product_param: InnerProductParameter | None = None
    pooling_param: PoolingParameter | None = None
    relu_param: ReLUParameter | None = None
    prelu_param: PReLUParameter | None = None
    concat_param: ConcatParameter | None = None

    @property
    def outputs(self) -> tuple[BlobParameter, ...]:
        """Thresholds by output tensor; a layer without blob entries names its only output like itself."""
        if self.blob_param or not self.threshold_y:
            return self.blob_param
        return (BlobParameter(self.name, self.threshold_y[0]),)


@dataclass(frozen=True)
class CalibrationTable:
    """Layers in network order. The thresholds live in the layers' outputs and nowhere else."""

    name: str = ""
    layers: tuple[LayerEntry, ...] = ()

    @staticmethod
    def of(thresholds: Mapping[str, float], name: str = "") -> CalibrationTable:
        """A table with one entry per tensor."""
        return CalibrationTable(name, tuple(_entry(tensor, value) for tensor, value in thresholds.items()))

    @property
    def thresholds(self) -> dict[str, float]:
        """Threshold by tensor name. Of a tensor that several layers write (in place) the last one counts."""
        return {blob.name: blob.threshold_y for layer in self.layers for blob in layer.outputs if blob.threshold_y > 0}

    def layer(self, name: str) -> LayerEntry | None:
        """The entry of a layer by name, None when there is none."""
        return next((layer for layer in self.layers if layer.name == name), None)


def _entry(tensor: str, threshold: float) -> LayerEntry:
    return LayerEntry(tensor, threshold_y=(threshold,), blob_param=(BlobParameter(tensor, threshold),))


def load_table(path: StrPath) -> CalibrationTable:
    """Read a table of any kind.

    Raises:
        CalibrationError: malformed, or with values that cannot be right; says file, line or layer, and what to do.
        OSError: the file cannot be read.
    """
    check_regular(path)
    data = Path(path).read_bytes()
    if not data.strip():
        raise CalibrationError("the calibration table is empty", file=path, remedy=REMEDY)
    text = _as_text(data)
    if text is not None and not _is_message_text(text):
        return _parse_lines(text, path)
    from bmcompiler.quant import table_message

    return table_message.parse_binary(data, path) if text is None else table_message.parse_text(text, path)


def save_table(table: CalibrationTable, path: StrPath) -> None:
    """Write a table; the file name's ending chooses the kind: `.pb2`, `.prototxt`, anything else is the text table.

    The text table holds the thresholds only.
    """
    suffix = Path(path).suffix
    if suffix in (".pb2", ".prototxt"):
        from bmcompiler.quant import table_message

        data = table_message.to_binary(table) if suffix == ".pb2" else table_message.to_text(table).encode()
    else:
        data = _to_lines(table).encode()
    with atomic_output(path, TABLE) as stream:
        stream.write(data)


def check_threshold(value: float, where: str, path: StrPath, *, zero: bool = False) -> float:
    """The value when it is a possible threshold (`zero`: 0 stands for unknown). Raises CalibrationError otherwise."""
    if _LEAST <= value <= _LARGEST or (zero and value == 0):
        return value
    what = "is not a positive number" if not 0 < value < math.inf else "is beyond the range of float32"
    raise CalibrationError(f"{where}: threshold {value} {what}", file=path, remedy=REMEDY)


# Bytes that text never holds; a binary table has some among its floats and lengths.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_MESSAGE_LINE = re.compile(r"\s*(?:name\s*:\s*[\"']|layer\s*:?\s*(?:[{<]|$))")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)\Z", re.IGNORECASE)


def _as_text(data: bytes) -> str | None:
    """The file as text, None when it is binary."""
    if _CONTROL.search(data):
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _is_message_text(text: str) -> bool:
    for line in text.split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            return _MESSAGE_LINE.match(line) is not None
    return False


def _parse_lines(text: str, path: StrPath) -> CalibrationTable:
    name, thresholds = "", dict[str, float]()
    for number, line in enumerate((line.strip() for line in text.split("\n")), 1):
        if line.startswith("# net: "):
            name = line.removeprefix("# net: ")
        if not line or line.startswith("#"):
            continue
        where = f"line {number}"
        tensor, value = _parse_line(line, where, path)
        if tensor in thresholds:
            raise CalibrationError(
                f"{where}: tensor '{tensor}' occurs twice", file=path, remedy="remove one of the lines"
            )
        thresholds[tensor] = check_threshold(value, where, path)
    if not thresholds:
        raise CalibrationError("the calibration table holds no tensor", file=path, remedy=REMEDY)
    return CalibrationTable.of(thresholds, name)


def _parse_line(line: str, where: str, path: StrPath) -> tuple[str, float]:
    if line.startswith('"'):
        tensor, words = _quoted(line, where, path)
    else:
        words = line.split()
        # `name threshold min max` when three numbers end the line, `name threshold` otherwise.
        count = 3 if len(words) >= 4 and all(_NUMBER.match(word) for word in words[-3:]) else 1
        tensor, words = line, words[-count:] if len(words) > 1 else []
        for _ in words:
            tensor = tensor.rsplit(None, 1)[0]
    if not words or not _NUMBER.match(words[0]):
        raise CalibrationError(f"{where} is no 'name threshold'", file=path, remedy=REMEDY)
    return tensor, float(words[0])


def _quoted(line: str, where: str, path: StrPath) -> tuple[str, list[str]]:
    try:
        tensor, end = json.JSONDecoder().raw_decode(line)
    except ValueError:
        raise CalibrationError(f"{where}: the quoted name does not end", file=path, remedy=REMEDY) from None
    return str(tensor), line[end:].split()


def _to_lines(table: CalibrationTable) -> str:
    lines = ["# Calibration table: tensor name, then the real magnitude that maps to 128."]
    if table.name.isprintable() and table.name.strip():
        lines.append(f"# net: {table.name}")
    lines += (f"{_name(tensor)} {value!r}" for tensor, value in table.thresholds.items())
    return "\n".join(lines) + "\n"


def _name(tensor: str) -> str:
    plain = tensor.isprintable() and tensor and tensor[0] not in '#"' and not any(map(str.isspace, tensor))
    return tensor if plain and not _is_message_text(tensor) else json.dumps(tensor)
