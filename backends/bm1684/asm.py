"""Command groups as text and back: what `bmcompiler.instructions.assembly` has to know of the BM1684."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bmcompiler.backends.bm1684.isa import (
    COMMAND_BYTES,
    FORMATS,
    GDMA,
    ID_FIELDS,
    OWN_ID,
    TIU,
    WAIT_ID,
    Direction,
    Engine,
    Eu,
    Function,
    Task,
)
from bmcompiler.bmodel.bm168x import Bm168xModel, CommandGroup
from bmcompiler.bmodel.bm168x_listing import StreamText, model_listing
from bmcompiler.errors import FileFormatError
from bmcompiler.instructions.assembly import GROUP, Syntax, assembled_groups, assignments, find_syntax
from bmcompiler.instructions.isa import Columns, Fields
from bmcompiler.instructions.order import queue_of

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
_KEYS = ("direction", "special_func", "sys_mem_type")
_SYNTAX = {
    Engine.TIU: Syntax(
        TIU,
        ("tsk_typ", "tsk_eu_typ"),
        {
            f"{name}.{eu.name.lower()}": {"tsk_typ": task, "tsk_eu_typ": eu}
            for task, name in _TASKS.items()
            for eu in Eu
        },
        "tiu.raw",
        own=OWN_ID[Engine.TIU],
        wait=WAIT_ID[Engine.TIU],
    ),
    Engine.GDMA: Syntax(
        GDMA,
        _KEYS,
        {
            f"{name}{'.matrix' * matrix}.{function.name.lower()}": dict(zip(_KEYS, (direction, function, matrix)))
            for direction, name in _DIRECTIONS.items()
            for function in Function
            for matrix in (0, 1)
        },
        "gdma.raw",
        own=OWN_ID[Engine.GDMA],
        wait=WAIT_ID[Engine.GDMA],
        joined={name: (f"{name}_lo", f"{name}_hi", 32) for name in ("src_addr", "dst_addr")},
        always=frozenset(("src_addr", "dst_addr")),
    ),
}


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
    return _SYNTAX[engine].mnemonics(columns)


def line_of(engine: Engine, fields: Fields) -> str:
    """A decoded command as text, without its number."""
    return _SYNTAX[engine].line(fields)


def assemble(text: str) -> list[CommandGroup]:
    """The command groups of a text written by `disassemble` or by hand; without a `group` line they are one group.

    Raises:
        FileFormatError: a line that cannot be read; names the line.
        EncodingError: a value that does not fit its field; names the line.
    """
    return [CommandGroup(group[Engine.TIU], group[Engine.GDMA]) for group in assembled_groups(text, _assembled, GROUP)]


def _assembled(words: list[str]) -> tuple[Engine, bytes]:
    syntax = find_syntax(_SYNTAX.values(), words[0])
    values, _ = assignments(words[1:])
    return Engine.TIU if syntax.layout is TIU else Engine.GDMA, syntax.layout.pack(syntax.fields(words[0], values))


def listing(model: Bm168xModel, net: int | None = None) -> str:
    """All programs of a model, or program number `net` alone; see `model_listing`."""
    return model_listing(model, _text, net)


def _text(engine: Engine, data: bytes) -> StreamText:
    if len(data) % COMMAND_BYTES:
        raise FileFormatError(f"{len(data)} bytes are not whole {engine.name} commands of {COMMAND_BYTES} bytes")
    commands = [FORMATS[engine].unpack(data[at : at + COMMAND_BYTES]) for at in range(0, len(data), COMMAND_BYTES)]
    lines = (line_of(engine, fields) for fields in commands)
    return StreamText(list(zip(queue_of(ID_FIELDS[engine], commands), lines)))
