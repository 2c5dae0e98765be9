"""Command groups as text and back: what `bmcompiler.instructions.assembly` has to know of the BM1684."""

from __future__ import annotations

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
from bmcompiler.bmodel.bm168x_listing import Assembler, StreamText
from bmcompiler.errors import FileFormatError
from bmcompiler.instructions.assembly import Syntax, find_syntax, packed
from bmcompiler.instructions.isa import Columns
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


def mnemonics(engine: Engine, columns: Columns) -> list[str]:
    """The mnemonic of every command of one engine, from its decoded columns."""
    return _SYNTAX[engine].mnemonics(columns)


def _text(engine: Engine, data: bytes) -> StreamText:
    if len(data) % COMMAND_BYTES:
        raise FileFormatError(f"{len(data)} bytes are not whole {engine.name} commands of {COMMAND_BYTES} bytes")
    commands = [FORMATS[engine].unpack(data[at : at + COMMAND_BYTES]) for at in range(0, len(data), COMMAND_BYTES)]
    return StreamText(list(zip(queue_of(ID_FIELDS[engine], commands), map(_SYNTAX[engine].line, commands))))


def _assembled(words: list[str]) -> tuple[Engine, bytes]:
    syntax = find_syntax(_SYNTAX.values(), words[0])
    return Engine.TIU if syntax.layout is TIU else Engine.GDMA, packed(syntax, words)


_ASSEMBLER = Assembler(_text, _assembled)
assemble, disassemble, listing = _ASSEMBLER.assemble, _ASSEMBLER.disassemble, _ASSEMBLER.listing
