"""Command buffers as text and back: what `bmcompiler.instructions.assembly` has to know of the BM1880.

One line per record. Halves of one quantity (global addresses, channel strides of GDMA) are printed as one value. The
round trip is byte-identical except for header bits 23:20, in which vendor encoders leave garbage (`cmdbuf.normalised`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import (
    CPU,
    CPU_NAME_BYTES,
    CPU_PAYLOAD,
    GDMA,
    HEADER,
    HEADER_SIZE,
    TIU,
    CpuOperation,
    Direction,
    Engine,
    GdmaFunction,
    Task,
    TensorOp,
    WindowOp,
)
from bmcompiler.errors import FileFormatError
from bmcompiler.instructions.assembly import Syntax, assignments, at_line, find_syntax, source_lines
from bmcompiler.instructions.isa import Columns, Fields

_HEADER_LEN = {Engine.TPU: TIU.size, Engine.GDMA: GDMA.size, Engine.CPU: CPU_PAYLOAD}
_HEADER_FIELDS = ("neuron", "weight", "len", "mask", "reserved_26")
# one printed name for two fields: (low half, high half, bits of the low half)
_JOINED = {
    "src_addr": ("src_addr_lo", "src_addr_hi", 32),
    "dst_addr": ("dst_addr_lo", "dst_addr_hi", 32),
    "src_c_str": ("src_c_str_lo", "src_c_str_hi", 16),
    "dst_c_str": ("dst_c_str_lo", "dst_c_str_hi", 16),
}

# Every call overwrites these two reset values (bm1880.md 4), so a mnemonic stands for 0.
_TPU_COMMON = {"opt_relu": 0, "opt_right_shift": 0}


def _tpu(task: Task, unit: int = 0, **flags: int) -> Fields:
    """The fields a TPU mnemonic implies."""
    what = {"opt_winograd": 0, "tens_mdsum": 0, "tens_lookup": 0} | flags
    return {"tsk_typ": task, "tsk_eu_typ": unit} | what


_TPU_KINDS: dict[str, Fields] = {
    "tpu.conv": _tpu(Task.CONV),
    "tpu.winograd": _tpu(Task.CONV, opt_winograd=1),
    "tpu.mdsum": _tpu(Task.TENSOR, tens_mdsum=1),
    "tpu.lut": _tpu(Task.TENSOR, tens_lookup=1),
    "tpu.matrix_mac": _tpu(Task.MATRIX_MAC),
    "tpu.matrix_mac_2": _tpu(Task.MATRIX_MAC_2),
    **{f"tpu.{op.name.lower()}": _tpu(Task.WINDOW, op) for op in WindowOp},
    **{f"tpu.{op.name.lower()}": _tpu(Task.TENSOR, op) for op in TensorOp},
}

_DIRECTIONS = {
    Direction.LOAD: "load",
    Direction.STORE: "store",
    Direction.GLOBAL: "copy_gmem",
    Direction.LOCAL: "copy_lmem",
}
_FUNCTIONS = {
    GdmaFunction.NONE: "",
    GdmaFunction.TRANSPOSE: ".tp",
    GdmaFunction.LRN_SHIFT: ".lrn",
    GdmaFunction.FORMAT: ".format",
    GdmaFunction.FILL: ".fill",
    GdmaFunction.CW_TRANSPOSE: ".cw",
    GdmaFunction.WINOGRAD: ".winograd",
}


def _gdma(direction: Direction, function: GdmaFunction, matrix: int) -> Fields:
    """The fields a GDMA mnemonic implies; copy_chw as kernel calls set it (bm1880.md 5)."""
    plain = function is GdmaFunction.NONE and direction in (Direction.LOAD, Direction.STORE) and not matrix
    shared = int(plain or function is GdmaFunction.LRN_SHIFT)
    return {"direction": direction, "function": function, "matrix": matrix, "copy_chw": shared}


_GDMA_KINDS: dict[str, Fields] = {
    f"gdma.{_DIRECTIONS[d]}{'.matrix' if matrix else ''}{_FUNCTIONS[f]}": _gdma(d, f, matrix)
    for d, f, matrix in product(Direction, GdmaFunction, (0, 1))
}

_CPU_KINDS: dict[str, Fields] = {
    "cpu.sync": {"operation": CpuOperation.SYNC},
    "cpu.plugin": {"operation": CpuOperation.PLUGIN},
}

_GROUPS = ("tsk", "opt", "tens", "short", "enable", "lrn", "res0", "src", "dst", "opd0", "opd1", "opd2", "conv")
_PARTS = ("addr", "n", "c", "h", "w", "n_str", "c_str", "h_str", "w_str", "b_str")


def _place(name: str) -> tuple[int, int]:
    """Fields are printed in the order options, result, operands, window, the rest, reserved bits."""
    group, _, part = name.partition("_")
    if group in _GROUPS:
        return _GROUPS.index(group), _PARTS.index(part) if part in _PARTS else 0
    return len(_GROUPS) + (group == "reserved"), 0


_SYNTAX = {
    Engine.TPU: Syntax(
        TIU,
        ("tsk_typ", "tsk_eu_typ", "opt_winograd", "tens_mdsum", "tens_lookup"),
        {name: _TPU_COMMON | fields for name, fields in _TPU_KINDS.items()},
        "tpu.raw",
        own="cmd_id_tpu",
        wait="cmd_id_gdma",
        order=_place,
    ),
    Engine.GDMA: Syntax(
        GDMA,
        ("direction", "function", "matrix"),
        _GDMA_KINDS,
        "gdma.raw",
        own="cmd_id_gdma",
        wait="cmd_id_tpu",
        joined=_JOINED,
        order=_place,
    ),
    Engine.CPU: Syntax(CPU, ("operation",), _CPU_KINDS, "cpu.raw", order=_place),
}


def disassemble(cmdbuf: bytes) -> str:
    """The command buffer as text, one line per record.

    Raises:
        FileFormatError: malformed buffer; names the record and its offset.
    """
    index = records(cmdbuf)
    raw = index.data.tobytes()
    lines = []
    for i, (number, at, size) in enumerate(zip(index.engine.tolist(), index.offset.tolist(), index.length.tolist())):
        engine = Engine(number)
        header = HEADER.unpack(raw[at - HEADER_SIZE : at])
        lines.append(f"{i}: {_line(engine, header, raw[at : at + size])}\n")
    return "".join(lines)


def _line(engine: Engine, header: Fields, payload: bytes) -> str:
    syntax = _SYNTAX[engine]
    fields = syntax.layout.unpack(payload[: syntax.layout.size])
    words = syntax.head(fields)
    expected = {"len": _HEADER_LEN[engine]}
    words += [f"{name}={header[name]}" for name in _HEADER_FIELDS if header[name] != expected.get(name, 0)]
    if engine is Engine.CPU:
        words += _cpu_words(fields, payload)
    return " ".join(words + syntax.body(fields))


def mnemonics(engine: Engine, columns: Columns) -> list[str]:
    """The mnemonic of every command of one engine, from its decoded columns."""
    return _SYNTAX[engine].mnemonics(columns)


def _cpu_words(fields: Fields, payload: bytes) -> list[str]:
    """Name and parameter bytes; a printable name replaces its four words in `fields`."""
    words = []
    label = payload[CPU_NAME_BYTES].rstrip(b"\0")
    if label.isascii() and label.decode("ascii").replace("_", "").replace(".", "").isalnum():
        words.append(f"name={label.decode('ascii')}")
        fields.update({f"name_{at}": 0 for at in range(0, 16, 4)})
    params = payload[CPU.size :].rstrip(b"\0")
    if params:
        words.append(f"params={params.hex()}")
    return words


def assemble(text: str) -> bytes:
    """The command buffer of a text written by `disassemble` (or by hand).

    Raises:
        FileFormatError: a line that cannot be read; names the line.
        EncodingError: a value that does not fit its field; names the line.
    """
    records = []
    for number, words in source_lines(text):
        with at_line(number):
            records.append(_assembled(words))
    return b"".join(records)


def _assembled(words: list[str]) -> bytes:
    syntax = find_syntax(_SYNTAX.values(), words[0])
    engine = next(engine for engine, one in _SYNTAX.items() if one is syntax)
    values, texts = assignments(words[1:], {"params": bytes.fromhex, "name": lambda value: value.encode("ascii")})
    header = {"engine": int(engine), "len": _HEADER_LEN[engine]}
    header |= {name: values.pop(name) for name in _HEADER_FIELDS if name in values}
    payload = syntax.layout.pack(syntax.fields(words[0], values))
    if engine is Engine.CPU:
        payload = _cpu_payload(payload, texts, header["len"] or header.get("mask", 0))
    elif texts:
        raise FileFormatError(f"'{words[0]}' takes neither a name nor params")
    return HEADER.pack(header) + payload


def _cpu_payload(head: bytes, texts: Mapping[str, bytes], size: int) -> bytes:
    body = bytearray(head)
    label = texts.get("name", b"")
    if label:
        if len(label) > 16:
            raise FileFormatError(f"library name '{label.decode('ascii')}' has more than 16 characters")
        body[CPU_NAME_BYTES] = label.ljust(16, b"\0")
    body += texts.get("params", b"")
    if len(body) > size:
        raise FileFormatError(f"a CPU record of {len(body)} bytes does not fit the payload of {size} bytes")
    return bytes(body).ljust(size, b"\0")
