"""Quantization tables: how each layer computes, as text that can be edited and fed back.

    # bmcompiler quantization table 1
    # layer  mode  error  cycles  why
    conv1    low     0.0081    4096  fewest cycles
    fc       float   -         900   kept in float by the option skip

One layer per line: the name of the tensor it makes (one with blanks, quotes or "#" is written as a JSON string) and a
mode: low, high or asymmetric (`quant_modes`), channel (`numeric.factors`), double (`numeric.two_terms`), int8 for what
has no modes, and for layers that are not double (low for products of two tensors and averages that are written in
another way then), float (also written f32). Only these two columns are read. error: difference that the mode alone
makes to the layer's result, relative; cycles: of the layer; "-" where unknown.
Lines that begin with "#" are comments. A layer that is not named is decided anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bmcompiler.errors import FileFormatError
from bmcompiler.files.kinds import TABLE
from bmcompiler.files.store import StrPath, atomic_output, read_text
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.numeric.quant_modes import MODES
from bmcompiler.numeric.two_terms import SHIFT_MODES

TABLE_MODES = (*MODES, CHANNEL, *SHIFT_MODES, "float")
_SAME = {"f32": "float"}
_HEADER = "# bmcompiler quantization table 1\n# layer  mode  error  cycles  why\n"
_LINE = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^\s"#]\S*)\s+(\S+)(?:\s.*)?$')
_PLAIN = re.compile(r'[^\s"#]\S*')


@dataclass(frozen=True)
class Row:
    """What was decided for one layer. error, cycles: None where they were not measured."""

    layer: str
    mode: str
    error: float | None = None
    cycles: int | None = None
    why: str = ""


def save_modes(path: StrPath, rows: Iterable[Row]) -> None:
    """Write a table."""
    cells = [
        (
            row.layer if _PLAIN.fullmatch(row.layer) else json.dumps(row.layer),
            row.mode,
            "-" if row.error is None else f"{row.error:.4g}",
            "-" if row.cycles is None else str(row.cycles),
            " ".join(row.why.split()),
        )
        for row in rows
    ]
    widths = [max((len(cell[column]) for cell in cells), default=0) for column in range(4)]
    lines = ("  ".join([*map(str.ljust, cell[:4], widths), cell[4]]).rstrip() for cell in cells)
    with atomic_output(path, TABLE) as file:
        file.write((_HEADER + "".join(f"{line}\n" for line in lines)).encode())


class Entry(NamedTuple):
    """A mode and the line it is from."""

    mode: str
    line: int


def load_modes(path: StrPath) -> Mapping[str, Entry]:
    """Layer name -> mode. Raises FileFormatError naming the line."""
    try:
        text = read_text(path)
    except UnicodeDecodeError:
        raise FileFormatError("is no text", file=path, remedy=_REMEDY) from None
    found: dict[str, Entry] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise FileFormatError(
                f"line {number} is not 'layer mode': {line.strip()[:80]!r}", file=path, remedy=_REMEDY
            )
        name, mode = _name(match[1]), _SAME.get(match[2], match[2])
        if name is None or mode not in TABLE_MODES:
            reason = f"line {number}: unknown mode {mode!r}" if name else f"line {number}: {match[1]} is no JSON string"
            raise FileFormatError(reason, file=path, remedy=f"the modes are {', '.join(TABLE_MODES)}")
        if name in found:
            raise FileFormatError(f"line {number}: layer '{name}' has a line already", file=path, remedy=_REMEDY)
        found[name] = Entry(mode, number)
    return found


_REMEDY = "write one 'layer mode' per line, or delete the file to have it made again"


def _name(text: str) -> str | None:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return None
