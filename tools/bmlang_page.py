"""The page on all operators, from the table: docs/bmlang_operators.md."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from bmcompiler.frontends.bmlang.rows import CHIPS, SIGNATURE_KINDS, Parameter, Row
from bmcompiler.frontends.bmlang.table import CONVENIENCES, TABLE

_HEAD = """# The operators of BMLang

Made by `make docs` from the table in `frontends/bmlang`, which the checks of the operators read too; do not edit.
[bmlang.md](bmlang.md) tells how they are used.

Parameters stand in the vendor's order; outputs are in *italics* and may be left out. Element types are those of the
tensors and scalars in, `->`, and of the tensors out; a letter before them means one type throughout, `?` an input that
may be missing, `*` a list. INT32 arithmetic goes through FLOAT32, so numbers above 2**24 are rounded; bits are not.
The BM1684X has FLOAT16 and BFLOAT16 as well; [floats of 16 bits](bmlang.md#floats-of-16-bits) says what they mean.
"Local" operators pass data on in local memory, "limited" ones under the condition that is given, "global" ones never.
Operators marked (TODO) are so in the vendor's page; here they work. `rrs(x, s)` is the rounding shift
`((x >> (s - 1)) + 1) >> 1`, `x` for `s` 0.
The last family, conveniences, is not the vendor's.
"""
_BROADCAST = {
    "both": "sizes equal or 1",
    "second": "sizes of the second equal or 1",
    "leading": "leading sizes of the mask 1",
}


def operators_page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for family, rows in groupby((*TABLE.values(), *CONVENIENCES.values()), lambda row: row.family):
        parts.append(f"## {family}\n")
        parts += [_entry(row) for row in rows]
    return "\n".join(parts)


def _entry(row: Row) -> str:
    return f"### {row.name}{' (TODO)' if row.todo else ''}\n\n{row.text}\n\n" + "".join(
        f"- {line}\n" for line in _lines(row)
    )


def _lines(row: Row) -> Iterator[str]:
    yield f"`{row.name}`({', '.join(map(_parameter, row.parameters))})"
    for typing, alike in groupby(CHIPS, row.typing):
        chips = list(alike)
        types = "; ".join(f"{_variants(form.variants)}`{form}`" for form in row.forms(chips[0]) if typing)
        yield f"{' and '.join(chips)}: {types or 'does not exist'}"
    notes = [{"L": "local", "G": "global"}.get(row.local, f"limited: local where {row.local}")]
    if row.broadcast in _BROADCAST:
        notes.append(f"broadcasts ({_BROADCAST[row.broadcast]})")
    if row.coeff:
        notes.append(f"constants as {row.coeff}")
    if row.printed_name:
        notes.append(f"the vendor's page prints its name as `{row.printed_name}`")
    yield "; ".join(notes)
    if row.host:
        yield f"on the host: {row.host}"


def _variants(names: tuple[str, ...]) -> str:
    return f"{' and '.join(names)} " if names else ""


def _parameter(parameter: Parameter) -> str:
    name = f"*{parameter.name}*" if parameter.is_output else parameter.name
    kind = SIGNATURE_KINDS.get(parameter.kind, parameter.kind).removesuffix(", out")
    default = "" if parameter.required else f" = {_shown(parameter.default)}"
    return f"{kind} {name}{default}"


def _shown(default: object) -> str:
    if default == ():
        return "[]"
    name = getattr(default, "name", None)
    return name if isinstance(name, str) else f"{default}".split("(")[0] + ("()" if "(" in f"{default}" else "")
