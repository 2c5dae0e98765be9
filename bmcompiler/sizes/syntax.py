"""Shapes as people write them: one number per axis, or several for a program each.

[[1,3,224,224]]                  one program
[[1..16,3,224,224]]              16 programs: every batch from 1 to 16
[[1,3,320..640:32,640]]          in steps of 32; the last size always belongs to a range
[[1,32..128:*2]]                 32, 64 and 128: each the double of the one before
[[1,{32,64,128}]]                these
[[1,n={32,64,128}],[1,n]]        a size with a name varies together with all that have it

Programs come in falling order of size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod

from bmcompiler.errors import UsageError
from bmcompiler.spelling import spelled

MOST_SIZE = 1 << 24
MOST_PROGRAMS = 64
EXAMPLE = '"[[1,3,224,224]]"'

_LIST = re.compile(r"\[(\[[^\[\]]*\](?:,\[[^\[\]]*\])*)\]")
_BETWEEN = re.compile(r",(?![^{}]*\})")
_PART = re.compile(r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<sizes>[\d.:*]+|\{[\d,]*\})|(?P<again>[A-Za-z_]\w*)")
_RANGE = re.compile(r"(\d+)\.\.(\d+)(?::(\*?)(\d+))?")

Sizes = list[tuple[int, ...]]
"""One shape per input of a network."""


def parse_shapes(text: str) -> list[Sizes]:
    """The shapes of each program, the largest first: it is the one whose samples calibrate all.

    `[[1,3,224,224],[1,16],[]]` has one list per input (empty for one number), `[1,3,224,224]` is the only input.

    Raises UsageError naming the part that is wrong.
    """
    whole = "".join(text.split())
    found = _LIST.fullmatch(f"[{whole}]" if not whole.startswith("[[") and whole != "[]" else whole)
    if found is None:
        raise UsageError(f"shapes must look like {EXAMPLE}, got {text!r}")
    shapes = [_BETWEEN.split(each) if each else [] for each in re.findall(r"\[([^\[\]]*)\]", found[1])]
    sets = dict(_sets(shapes, text))
    counts = [len(sizes) for sizes in sets.values() if len(sizes) > 1]
    if prod(counts) > MOST_PROGRAMS:
        raise _too_many(text, counts)
    chosen = [dict(zip(sets, sizes)) for sizes in product(*sets.values())]
    programs = [_with(shapes, sizes) for sizes in chosen]
    return sorted(programs, key=lambda each: -sum(map(prod, each)))


def parse_one(text: str) -> Sizes:
    """Shapes for one program. Raises UsageError for ranges."""
    programs = parse_shapes(text)
    if len(programs) > 1:
        raise UsageError(
            f"{spelled('shapes')} {text!r} are those of {len(programs)} programs, one is meant here",
            remedy=f"give one size per axis: {EXAMPLE}",
        )
    return programs[0]


def _sets(shapes: Sequence[Sequence[str]], text: str) -> Iterator[tuple[str, list[int]]]:
    """The sizes of each part that is no name of another, by its name or its place."""
    known: set[str] = set()
    for index, shape in enumerate(shapes):
        for axis, part in enumerate(shape):
            found = _PART.fullmatch(part)
            if found is None:
                raise _wrong(part, text, "is no size, range or set, like 32, 32..128:32, 32..128:*2 or {32,64,128}")
            if found["again"]:
                continue
            if found["name"] in known:
                raise _wrong(part, text, f"gives '{found['name']}' sizes for the second time")
            known.add(found["name"] or "")
            yield found["name"] or _place(index, axis), _sizes(part, found["sizes"], text)
    for part in (part for shape in shapes for part in shape if part.isidentifier() and part not in known):
        raise _wrong(part, text, f"is a name without sizes: write {part}=32..128:32 at one place")


def _place(index: int, axis: int) -> str:
    return f"{index},{axis}"


def _with(shapes: Sequence[Sequence[str]], sizes: Mapping[str, int]) -> Sizes:
    def size(part: str, index: int, axis: int) -> int:
        name = part if part.isidentifier() else part.partition("=")[0] if "=" in part else _place(index, axis)
        return sizes[name]

    return [tuple(size(part, i, k) for k, part in enumerate(shape)) for i, shape in enumerate(shapes)]


def _sizes(part: str, sizes: str, text: str) -> list[int]:
    """The numbers of a part, ascending."""
    found = _RANGE.fullmatch(sizes)
    if found is not None:
        first, last, step = int(found[1]), int(found[2]), int(found[4] or 1)
        if last < first:
            raise _wrong(part, text, f"ends at {last}, below its start {first}")
        if step < 1 + bool(found[3]):
            raise _wrong(part, text, "has a step that leads nowhere")
        _need_size(first, part, text)
        _need_size(last, part, text)
        count = (last - first - 1) // step + 2 if not found[3] else 0
        if count > MOST_PROGRAMS:
            raise _too_many(text, [count])
        values = [*(_multiples(first, last, step) if found[3] else range(first, last, step)), last]
    elif sizes.startswith("{") or sizes.isdigit():
        listed = sizes.strip("{}").split(",")
        if not all(listed):
            raise _wrong(part, text, "lacks a number")
        values = list(map(int, listed))
    else:
        raise _wrong(part, text, "is no range: write FIRST..LAST, FIRST..LAST:STEP or FIRST..LAST:*FACTOR")
    for value in values:
        _need_size(value, part, text)
    return sorted(set(values))


def _multiples(size: int, last: int, factor: int) -> Iterator[int]:
    """Sizes below the last."""
    while size < last:
        yield size
        size *= factor


def _need_size(value: int, part: str, text: str) -> None:
    if not 1 <= value <= MOST_SIZE:
        raise _wrong(part, text, f"every size must be a whole number from 1 to {MOST_SIZE}")


def _wrong(part: str, text: str, reason: str) -> UsageError:
    return UsageError(f"{part!r} in shapes {text!r}: {reason}")


def _too_many(text: str, counts: Sequence[int]) -> UsageError:
    each = f" ({' x '.join(map(str, counts))} sizes)" if len(counts) > 1 else ""
    return UsageError(
        f"shapes {text!r} come to {prod(counts):,} programs{each}, at most {MOST_PROGRAMS} fit into a file",
        remedy="take wider steps, or give sizes that vary together one name: [[1,3,s=320..640:32,s]]",
    )
