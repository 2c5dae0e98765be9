"""Command buffers as text and back, from the instruction tables.

One line per record: `index: mnemonic id=OWN wait=OTHER field=value ...`. The mnemonic implies the fields of its row in
the tables below; every other field is printed when it differs from its reset value. Halves of one quantity (global
addresses, channel strides of GDMA) are printed as one value. `assemble` ignores the index and everything after `#`.
The round trip is byte-identical except for header bits 23:20, in which vendor encoders leave garbage
(`cmdbuf.normalised`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import (
    CPU,
    CPU_NAME_BYTES,
    CPU_PAYLOAD,
    FORMATS,
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
from bmcompiler.errors import BMError, EncodingError, FileFormatError
from bmcompiler.isa import Columns, Format

Fields = dict[str, int]

_OWN = {Engine.TPU: "cmd_id_tpu", Engine.GDMA: "cmd_id_gdma"}
_WAIT = {Engine.TPU: "cmd_id_gdma", Engine.GDMA: "cmd_id_tpu"}
_HEADER_LEN = {Engine.TPU: TIU.size, Engine.GDMA: GDMA.size, Engine.CPU: CPU_PAYLOAD}
_HEADER_FIELDS = ("neuron", "weight", "len", "mask", "reserved_26")
# one printed name for two fields: (low half, high half, bits of the low half)
_JOINED = {
    "src_addr": ("src_addr_lo", "src_addr_hi", 32),
    "dst_addr": ("dst_addr_lo", "dst_addr_hi", 32),
    "src_c_str": ("src_c_str_lo", "src_c_str_hi", 16),
    "dst_c_str": ("dst_c_str_lo", "dst_c_str_hi", 16),
}
_HALVES = {half: name for name, (low, high, _) in _JOINED.items() for half in (low, high)}

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

# Mnemonics for payloads no row above describes: nothing is implied.
_RAW = {Engine.TPU: "tpu.raw", Engine.GDMA: "gdma.raw", Engine.CPU: "cpu.raw"}
_KINDS = {Engine.TPU: _TPU_KINDS, Engine.GDMA: _GDMA_KINDS, Engine.CPU: _CPU_KINDS}
_COMMON: dict[Engine, Fields] = {Engine.TPU: _TPU_COMMON, Engine.GDMA: {}, Engine.CPU: {}}
_KEYS = {
    Engine.TPU: ("tsk_typ", "tsk_eu_typ", "opt_winograd", "tens_mdsum", "tens_lookup"),
    Engine.GDMA: ("direction", "function", "matrix"),
    Engine.CPU: ("operation",),
}
_BY_KEY = {
    engine: {tuple(int(fields[key]) for key in _KEYS[engine]): name for name, fields in kinds.items()}
    for engine, kinds in _KINDS.items()
}
_BY_NAME: dict[str, tuple[Engine, Fields]] = {
    **{name: (engine, _COMMON[engine] | fields) for engine, kinds in _KINDS.items() for name, fields in kinds.items()},
    **{name: (engine, {}) for engine, name in _RAW.items()},
}

_GROUPS = ("tsk", "opt", "tens", "short", "enable", "lrn", "res0", "src", "dst", "opd0", "opd1", "opd2", "conv")
_PARTS = ("addr", "n", "c", "h", "w", "n_str", "c_str", "h_str", "w_str", "b_str")


def _printed(layout: Format) -> list[str]:
    """Field names in the order they are printed: options, result, operands, window, the rest, reserved bits."""

    def place(name: str) -> tuple[int, int]:
        group, _, part = name.partition("_")
        if group in _GROUPS:
            return _GROUPS.index(group), _PARTS.index(part) if part in _PARTS else 0
        return len(_GROUPS) + (group == "reserved"), 0

    names = dict.fromkeys(_HALVES.get(field.name, field.name) for field in layout.fields)
    return sorted(names, key=place)


_NAMES = {engine: [n for n in _printed(layout) if n not in _OWN.values()] for engine, layout in FORMATS.items()}


def _joined(fields: Mapping[str, int]) -> Fields:
    """Replace the halves of long quantities by the quantity."""
    out = {name: value for name, value in fields.items() if name not in _HALVES}
    for name, (low, high, bits) in _JOINED.items():
        if low in fields:
            out[name] = fields[low] | fields[high] << bits
    return out


_RESET = {engine: _joined({field.name: field.default for field in layout.fields}) for engine, layout in FORMATS.items()}


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
    fields = FORMATS[engine].unpack(payload[: FORMATS[engine].size])
    kind = _BY_KEY[engine].get(tuple(fields[key] for key in _KEYS[engine]), _RAW[engine])
    words = [f"{kind:16}"]
    if engine in _OWN:
        words += [f"id={fields[_OWN[engine]]}", f"wait={fields[_WAIT[engine]]}"]
    expected = {"len": _HEADER_LEN[engine]}
    words += [f"{name}={header[name]}" for name in _HEADER_FIELDS if header[name] != expected.get(name, 0)]
    if engine is Engine.CPU:
        words += _cpu_words(fields, payload)
    baseline = _RESET[engine] | _BY_NAME[kind][1]
    values = _joined(fields)
    words += [_word(name, values[name]) for name in _NAMES[engine] if values.get(name, 0) != baseline.get(name, 0)]
    return " ".join(words)


def mnemonics(engine: Engine, columns: Columns) -> list[str]:
    """The mnemonic of every command of one engine, from its decoded columns."""
    keys = zip(*(columns[key].tolist() for key in _KEYS[engine]))
    return [_BY_KEY[engine].get(key, _RAW[engine]) for key in keys]


def _word(name: str, value: int) -> str:
    return f"{name}=0x{value:x}" if name.endswith("_addr") else f"{name}={value}"


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
    return b"".join(_assembled_lines(text))


def _assembled_lines(text: str) -> Iterator[bytes]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if words and words[0].endswith(":"):
            words = words[1:]
        if not words:
            continue
        try:
            yield _assembled(words)
        except EncodingError as error:
            raise EncodingError(f"line {number}: {error.reason}") from error
        except BMError as error:
            raise FileFormatError(f"line {number}: {error.reason}") from error


def _assembled(words: list[str]) -> bytes:
    if words[0] not in _BY_NAME:
        raise FileFormatError(f"'{words[0]}' is not a mnemonic of this chip")
    engine, implied = _BY_NAME[words[0]]
    given = _assignments(words[1:])
    tail = given.pop("params", b"")
    label = given.pop("name", b"")
    values = {name: value for name, value in given.items() if isinstance(value, int)}
    header = {"engine": int(engine), "len": _HEADER_LEN[engine]}
    header |= {name: values.pop(name) for name in _HEADER_FIELDS if name in values}
    if engine in _OWN:
        for alias, name in (("id", _OWN[engine]), ("wait", _WAIT[engine])):
            if alias in values:
                values[name] = values.pop(alias)
    payload = FORMATS[engine].pack(implied | _split(values))
    if engine is Engine.CPU:
        payload = _cpu_payload(payload, label, tail, header["len"] or header.get("mask", 0))
    elif tail or label:
        raise FileFormatError(f"'{words[0]}' takes neither a name nor params")
    return HEADER.pack(header) + payload


def _assignments(words: list[str]) -> dict[str, int | bytes]:
    out: dict[str, int | bytes] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name in out:
            raise FileFormatError(f"'{word}' is not a field=value, or repeats one")
        try:
            if name == "params":
                out[name] = bytes.fromhex(value)
            else:
                out[name] = value.encode("ascii") if name == "name" else int(value, 0)
        except ValueError as error:
            raise FileFormatError(f"the value of '{word}' cannot be read") from error
    return out


def _split(values: Fields) -> Fields:
    out = dict(values)
    for name, (low, high, bits) in _JOINED.items():
        if name in out:
            value = out.pop(name)
            out |= {low: value & ((1 << bits) - 1), high: value >> bits}
    return out


def _cpu_payload(head: bytes, label: int | bytes, tail: int | bytes, size: int) -> bytes:
    body = bytearray(head)
    if isinstance(label, bytes) and label:
        if len(label) > 16:
            raise FileFormatError(f"library name '{label.decode('ascii')}' has more than 16 characters")
        body[CPU_NAME_BYTES] = label.ljust(16, b"\0")
    if isinstance(tail, bytes):
        body += tail
    if len(body) > size:
        raise FileFormatError(f"a CPU record of {len(body)} bytes does not fit the payload of {size} bytes")
    return bytes(body).ljust(size, b"\0")
