"""The text of docs/tpukernel_functions.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bmcompiler.backends.bm1684x.tpukernel.rows import Function, Known
from bmcompiler.backends.bm1684x.tpukernel.units.unavailable import UNAVAILABLE
from bmcompiler.tpukernel import TABLE
from tpukernel_page.errors import LEAST, SHAPE, Measured

_KNOWN = {
    Known.REFERENCE: "special functions of the reference; its notes are checked, and errors quote them",
    Known.RECORDED: "commands or values equal to those recorded of the vendor's library",
    Known.DRAWN: "commands and memory equal to those of calls with drawn arguments that the vendor's library made",
    Known.DESCRIBED: "made by the description of what the vendor's library does, without a recording",
    Known.DERIVED: "of the form of recorded functions, compared with numpy; the vendor's prototypes may differ",
    Known.OWN: "not in the vendor's library",
}
_HEAD = """# The functions of TPUKernel

Made by `make docs` from the table in `backends/bm1684x/tpukernel`, which the functions themselves are made from; do not
edit. [tpukernel.md](tpukernel.md) tells how they are used.

"""


def page(errors: Sequence[Measured]) -> str:
    """All functions by group, and the errors of composites."""
    return "".join(line + "\n" for line in (_HEAD.rstrip(), "", *_counts(), *_groups(), *_errors(errors), *_missing()))


def _counts() -> Iterator[str]:
    counts = Counter(row.source for row in TABLE.values())
    yield f"{len(TABLE)} functions. How they are known:"
    yield ""
    yield from ("| word | functions | means |", "|---|---|---|")
    yield from (f"| {known.value} | {counts[known]} | {text} |" for known, text in _KNOWN.items())
    yield ""


def _groups() -> Iterator[str]:
    groups: dict[str, list[Function]] = {}
    for row in TABLE.values():
        groups.setdefault(row.group, []).append(row)
    for group, rows in groups.items():
        yield from (f"## {group}", "", "| function | gives | known |", "|---|---|---|")
        for row in rows:
            formula = row.formula.replace("|", "\\|")
            yield f"| `{row.prototype}` | {formula} | {row.source.value} |"
        yield ""


def _errors(errors: Sequence[Measured]) -> Iterator[str]:
    count = SHAPE.n * SHAPE.c * SHAPE.h * SHAPE.w
    yield from ("## Errors of composites", "")
    yield f"Largest errors in fp32 against float64, on {count} random numbers; a second source is in [0.5, 2]. Relative"
    yield f"errors are those of results of at least {LEAST}."
    yield ""
    yield from ("| function | numbers | absolute | relative |", "|---|---|---|---|")
    for one in errors:
        yield f"| `{one.name}` | {one.numbers} | {one.absolute:.1e} | {one.relative:.1e} |"
    yield ""


def _missing() -> Iterator[str]:
    yield from ("## Not there", "", "Calls of these answer with the reason.", "", "| functions | why |", "|---|---|")
    for why in dict.fromkeys(UNAVAILABLE.values()):
        names = (f"`{name}`" for name, reason in UNAVAILABLE.items() if reason == why)
        yield f"| {', '.join(names)} | {why} |"
