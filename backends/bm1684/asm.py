"""Command groups as text and back, from the instruction tables.

One line per command: `index: mnemonic id=OWN wait=OTHER field=value ...`, and a line `group` before each group. The
mnemonic stands for task and operation, or for direction and function; every other field is printed when it differs from
its reset value. Global addresses of GDMA are printed as one number. TIU commands are listed first, then GDMA commands;
`assemble` accepts any order, ignores the index and everything after `#`. The round trip is byte-identical.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bmcompiler.backends.bm1684.builder import CommandGroup
from bmcompiler.backends.bm1684.isa import (
    COMMAND_BYTES,
    FORMATS,
    OWN_ID,
    WAIT_ID,
    Direction,
    Engine,
    Eu,
    Function,
    Task,
)
from bmcompiler.errors import EncodingError, FileFormatError
from bmcompiler.isa import Columns

Fields = dict[str, int]

_TASKS = {
    Task.CONV: "conv",
    Task.POOL_OR_DEPTHWISE: "pord",
    Task.MATRIX: "mm",
    Task.TENSOR: "ar",
    Task.MATRIX_INT8_256: "mm2",
    Task.CONV_CORRELATION: "cc",
    Task.LUT: "lut",
    Task.SUM: "md_sum",
    Task.SCALAR: "md_scalar",
    Task.SFU: "md_sfu",
    Task.LINEAR: "md_linear",
    Task.ARRANGE: "lma",
    Task.DECOMPRESS: "decompress",
    Task.COMPARE: "md_cmp",
    Task.VECTOR_CORRELATION: "vc",
}
_DIRECTIONS = {
    Direction.SYSTEM_TO_LOCAL: "s2l",
    Direction.LOCAL_TO_SYSTEM: "l2s",
    Direction.SYSTEM_TO_SYSTEM: "s2s",
    Direction.LOCAL_TO_LOCAL: "l2l",
}
_KEYS = {
    Engine.TIU: ("tsk_typ", "tsk_eu_typ"),
    Engine.GDMA: ("direction", "special_func", "sys_mem_type"),
}
_NAMES: dict[Engine, dict[tuple[int, ...], str]] = {
    Engine.TIU: {(task, eu): f"{name}.{eu.name.lower()}" for task, name in _TASKS.items() for eu in Eu},
    Engine.GDMA: {
        (direction, function, matrix): f"{name}{'.matrix' * matrix}.{function.name.lower()}"
        for direction, name in _DIRECTIONS.items()
        for function in Function
        for matrix in (0, 1)
    },
}
_RAW = {Engine.TIU: "tiu.raw", Engine.GDMA: "gdma.raw"}
_BY_NAME: dict[str, tuple[Engine, Fields]] = {
    **{
        name: (engine, dict(zip(_KEYS[engine], key, strict=True)))
        for engine, names in _NAMES.items()
        for key, name in names.items()
    },
    **{name: (engine, {}) for engine, name in _RAW.items()},
}
_HALVES = ("src_addr", "dst_addr")
GROUP = "group"


def disassemble(groups: Sequence[CommandGroup]) -> str:
    """Command groups as text.

    Raises:
        FileFormatError: bytes that are not whole commands.
    """
    lines = []
    for group in groups:
        lines.append(GROUP)
        for engine, data in zip((Engine.TIU, Engine.GDMA), group):
            lines += [f"{index}: {line}" for index, line in enumerate(_lines(engine, data))]
    return "".join(f"{line}\n" for line in lines)


def _lines(engine: Engine, data: bytes) -> Iterator[str]:
    if len(data) % COMMAND_BYTES:
        raise FileFormatError(f"{len(data)} bytes are not whole {engine.name} commands of {COMMAND_BYTES} bytes")
    for at in range(0, len(data), COMMAND_BYTES):
        yield line_of(engine, FORMATS[engine].unpack(data[at : at + COMMAND_BYTES]))


def mnemonics(engine: Engine, columns: Columns) -> list[str]:
    """The mnemonic of every command of one engine, from its decoded columns."""
    keys = zip(*(columns[key].tolist() for key in _KEYS[engine]))
    return [_NAMES[engine].get(key, _RAW[engine]) for key in keys]


def line_of(engine: Engine, fields: Fields) -> str:
    """A decoded command as text, without its number."""
    name = _NAMES[engine].get(tuple(fields[key] for key in _KEYS[engine]), _RAW[engine])
    implied = _BY_NAME[name][1]
    words = [f"{name:16}", f"id={fields[OWN_ID[engine]]}", f"wait={fields[WAIT_ID[engine]]}"]
    hidden = {OWN_ID[engine], WAIT_ID[engine], *implied}
    for field in FORMATS[engine].fields:
        value = fields[field.name]
        if engine is Engine.GDMA and field.name[:8] in _HALVES:
            if field.name.endswith("_lo"):
                words.append(f"{field.name[:8]}=0x{value | fields[field.name[:8] + '_hi'] << 32:x}")
        elif value != field.default and field.name not in hidden:
            words.append(f"{field.name}=0x{value:x}" if field.name.endswith("_addr") else f"{field.name}={value}")
    return " ".join(words)


def assemble(text: str) -> list[CommandGroup]:
    """The command groups of a text written by `disassemble` or by hand; without a `group` line they are one group.

    Raises:
        FileFormatError: a line that cannot be read; names the line.
        EncodingError: a value that does not fit its field; names the line.
    """
    groups: list[dict[Engine, list[bytes]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if words and words[0].endswith(":"):
            words = words[1:]
        if not words:
            continue
        if words == [GROUP] or not groups:
            groups.append({engine: [] for engine in Engine})
        if words == [GROUP]:
            continue
        try:
            engine, command = _command(words)
        except EncodingError as error:
            raise EncodingError(f"line {number}: {error.reason}") from error
        except FileFormatError as error:
            raise FileFormatError(f"line {number}: {error.reason}") from error
        groups[-1][engine].append(command)
    return [CommandGroup(b"".join(group[Engine.TIU]), b"".join(group[Engine.GDMA])) for group in groups]


def _command(words: list[str]) -> tuple[Engine, bytes]:
    if words[0] not in _BY_NAME:
        raise FileFormatError(f"'{words[0]}' is not a mnemonic of this chip")
    engine, implied = _BY_NAME[words[0]]
    aliases = {"id": OWN_ID[engine], "wait": WAIT_ID[engine]}
    fields = dict(implied)
    seen: set[str] = set()
    for word in words[1:]:
        name, equals, text = word.partition("=")
        if not equals or name in seen:
            raise FileFormatError(f"'{word}' is not a field=value, or repeats one")
        seen.add(name)
        try:
            value = int(text, 0)
        except ValueError as error:
            raise FileFormatError(f"the value of '{word}' cannot be read") from error
        if engine is Engine.GDMA and name in _HALVES:
            fields |= {f"{name}_lo": value & 0xFFFF_FFFF, f"{name}_hi": value >> 32}
        else:
            fields[aliases.get(name, name)] = value
    return engine, FORMATS[engine].pack(fields)
