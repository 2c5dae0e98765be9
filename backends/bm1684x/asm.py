"""Command groups as text and back: what `bmcompiler.instructions.assembly` has to know of the BM1684X.

A line `group` stands before each group. A mnemonic stands for form, class and operation of a TIU command, or for form,
type and function of a GDMA command; long TIU forms begin with `long.`. Zero bytes after the end of a stream are a line
`tiu.pad bytes=N` or `gdma.pad bytes=N`. The round trip is byte-identical.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

from bmcompiler.backends.bm1684x.codes import UNITS, Function, Gather, Matrix, Move, Sort, Task
from bmcompiler.backends.bm1684x.isa import (
    ADDRESS_LOW,
    AR,
    CMP,
    CONV,
    GDMA_FORMATS,
    GDMA_SYS,
    GENERAL_SHORT,
    ID_FIELDS,
    INDEXED,
    LAR,
    LIN,
    LONG,
    MATRIX_SHORT,
    MM,
    MM2,
    NONZERO_SHORT,
    PORD,
    RQ,
    SELECT_SHORT,
    SFU,
    SG,
    SGL,
    SORT,
    SYS,
    TENSOR,
    TIU_FORMATS,
    TRANS,
    VC,
)
from bmcompiler.backends.bm1684x.stream import split
from bmcompiler.bmodel.bm168x_listing import Assembler, StreamText
from bmcompiler.errors import FileFormatError
from bmcompiler.instructions.assembly import Syntax, assignments, find_syntax, packed
from bmcompiler.instructions.isa import Fields, Format
from bmcompiler.instructions.order import Engine, queue_of

_PAD = {Engine.TIU: "tiu.pad", Engine.GDMA: "gdma.pad"}
_TIU_KEYS = ("cmd_short", "tsk_typ", "tsk_eu_typ")
_NAMES = {
    Task.CONV: "conv",
    Task.POOL_OR_DEPTHWISE: "pord",
    Task.MATRIX: "mm",
    Task.ARITHMETIC: "ar",
    Task.REQUANT: "rq",
    Task.TRANSPOSE: "trans",
    Task.GATHER: "sg",
    Task.SFU: "sfu",
    Task.LINEAR: "lin",
    Task.COMPARE: "cmp",
    Task.VECTOR: "vc",
    Task.SYSTEM: "sys",
}
_SHORT: dict[Format, tuple[Task, tuple[IntEnum, ...]]] = {
    CONV: (Task.CONV, tuple(UNITS[Task.CONV])),
    PORD: (Task.POOL_OR_DEPTHWISE, tuple(UNITS[Task.POOL_OR_DEPTHWISE])),
    MM: (Task.MATRIX, tuple(unit for unit in Matrix if unit < Matrix.NN)),
    MM2: (Task.MATRIX, tuple(unit for unit in Matrix if unit >= Matrix.NN)),
    AR: (Task.ARITHMETIC, tuple(UNITS[Task.ARITHMETIC])),
    RQ: (Task.REQUANT, tuple(UNITS[Task.REQUANT])),
    TRANS: (Task.TRANSPOSE, tuple(UNITS[Task.TRANSPOSE])),
    SG: (Task.GATHER, tuple(unit for unit in Gather if unit < Gather.ROWS)),
    SGL: (Task.GATHER, tuple(unit for unit in Gather if unit >= Gather.ROWS)),
    SFU: (Task.SFU, tuple(UNITS[Task.SFU])),
    LIN: (Task.LINEAR, tuple(UNITS[Task.LINEAR])),
    CMP: (Task.COMPARE, tuple(UNITS[Task.COMPARE])),
    VC: (Task.VECTOR, tuple(UNITS[Task.VECTOR])),
}


def _tiu_syntaxes() -> Iterator[Syntax]:
    for layout in TIU_FORMATS:
        if layout in _SHORT:
            kinds = _kinds("", 1, *_SHORT[layout])
        elif layout is LONG:
            tasks = [(task, tuple(units)) for task, units in UNITS.items() if task is not Task.SYSTEM]
            kinds = {name: keys for task, units in tasks for name, keys in _kinds("long.", 0, task, units).items()}
        elif layout is SYS:
            kinds = _kinds("", 0, Task.SYSTEM, tuple(UNITS[Task.SYSTEM]))
        else:
            assert layout is LAR, "the last short form there is"
            kinds = {}
        yield Syntax(layout, _TIU_KEYS, kinds, f"{layout.name}.raw", own="cmd_id", wait="cmd_id_dep")


def _kinds(prefix: str, short: int, task: Task, units: Sequence[IntEnum]) -> dict[str, dict[str, int]]:
    return {
        f"{prefix}{_NAMES[task]}.{unit.name.lower()}": dict(zip(_TIU_KEYS, (short, int(task), int(unit))))
        for unit in units
    }


_GDMA_KEYS = ("cmd_short", "cmd_type", "special_func")
_GDMA_KINDS: dict[Format, tuple[int, tuple[Move, ...]]] = {
    TENSOR: (0, (Move.TENSOR, Move.MATRIX, Move.MASKED_SELECT, Move.GENERAL, Move.CW_TRANSPOSE, Move.NONZERO)),
    INDEXED: (0, (Move.GATHER, Move.SCATTER)),
    MATRIX_SHORT: (1, (Move.MATRIX,)),
    SELECT_SHORT: (1, (Move.MASKED_SELECT,)),
    GENERAL_SHORT: (1, (Move.GENERAL,)),
    NONZERO_SHORT: (1, (Move.NONZERO,)),
    GDMA_SYS: (1, (Move.SYSTEM,)),
}


def _gdma_syntax(layout: Format) -> Syntax:
    short, moves = _GDMA_KINDS[layout]
    form = ".short" if short and layout is not GDMA_SYS else ""
    kinds = {
        f"dma.{move.name.lower()}{form}.{function.name.lower()}": dict(zip(_GDMA_KEYS, (short, move, function)))
        for move in moves
        for function in Function
    }
    halves = [name.removesuffix("_lo") for name in layout.by_name if name.endswith("_lo")]
    joined = {name: (f"{name}_lo", f"{name}_hi", 32) for name in halves}
    always = frozenset(name for name in halves if name in ("src_addr", "dst_addr"))
    return Syntax(layout, _GDMA_KEYS, kinds, f"{layout.name}.raw", "cmd_id", "cmd_id_dep", joined, always)


def _sort_syntax() -> Syntax:
    kinds = {f"sort.{kind.name.lower()}": {"kind": int(kind)} for kind in Sort}
    names = ("src_addr", "dst_addr", "src_index_addr", "dst_index_addr")
    joined = {name: (f"{name}_lo", f"{name}_hi", ADDRESS_LOW) for name in names}
    return Syntax(SORT, ("kind",), kinds, "sort.raw", joined=joined, always=frozenset(names[:2]))


_SYNTAX: dict[Engine, dict[Format, Syntax]] = {
    Engine.TIU: {syntax.layout: syntax for syntax in _tiu_syntaxes()},
    Engine.GDMA: {layout: _gdma_syntax(layout) for layout in GDMA_FORMATS},
    Engine.HAU: {SORT: _sort_syntax()},
}
_ALL = [syntax for table in _SYNTAX.values() for syntax in table.values()]


def mnemonic(engine: Engine, layout: Format, fields: Fields) -> str:
    """The first word of a decoded command as text."""
    return _SYNTAX[engine][layout].kind(fields)


def _text(engine: Engine, data: bytes) -> StreamText:
    stream = split(engine, data)
    commands = stream.fields()
    lines = (_SYNTAX[engine][layout].line(fields) for layout, fields in zip(stream.formats, commands))
    padding = f"{_PAD[engine]} bytes={stream.padding}" if stream.padding else ""
    return StreamText(list(zip(queue_of(ID_FIELDS.get(engine), commands), lines)), padding)


def _assembled(words: list[str]) -> tuple[Engine, bytes]:
    for engine, pad in _PAD.items():
        if words[0] == pad:
            values, _ = assignments(words[1:])
            count = values.get("bytes", -1)
            if len(values) != 1 or not 0 <= count < 1 << 20:
                raise FileFormatError(f"'{pad}' needs bytes=0 to 2^20")
            return engine, bytes(count)
    syntax = find_syntax(_ALL, words[0])
    engine = next(one for one, table in _SYNTAX.items() if syntax.layout in table)
    return engine, packed(syntax, words)


_ASSEMBLER = Assembler(_text, _assembled)
assemble, disassemble, listing = _ASSEMBLER.assemble, _ASSEMBLER.disassemble, _ASSEMBLER.listing
