"""The vendors' layouts of structures, in layouts.txt, and the C text that refuses to compile where ours differ."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.capi.api import declared


@dataclass(frozen=True)
class Layout:
    """A structure on a 64-bit host: its bytes, and the byte where each field begins (`a.b` is a field of a field)."""

    size: int
    offsets: dict[str, int]


def layouts(library: str) -> dict[str, Layout]:
    """The structures of a library; those of a library for another SDK replace the usual ones.

    Args:
        library: its name, with "-SDK" behind it where it is for another SDK than the usual.
    """
    usual, _, version = library.partition("-")
    found = _read(usual)
    return found | _read(library) if version else found


def assertions(library: str) -> str:
    """C text that compiles only where every structure is the vendor's."""
    lines = []
    for name, one in layouts(library).items():
        lines.append(f'_Static_assert(sizeof({name}) == {one.size}, "{name}: {one.size} bytes");\n')
        lines += [
            f'_Static_assert(offsetof({name}, {field}) == {offset}, "{name}.{field}: at {offset}");\n'
            for field, offset in one.offsets.items()
        ]
    return "".join(lines)


def _read(library: str) -> dict[str, Layout]:
    lines = [line for line in declared(__file__, "layouts.txt").splitlines() if not line.startswith("#")]
    rows = "\n".join(lines).replace("\n    ", " ").splitlines()
    found = {}
    for row in rows:
        head, _, fields = row.partition(": ")
        if head.startswith(f"{library} "):
            *name, size = head.split()[1:]
            pairs = (field.split() for field in fields.split(", "))
            found[" ".join(name)] = Layout(int(size), {field: int(offset) for field, offset in pairs})
    return found
