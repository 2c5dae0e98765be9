"""Groups changed in one place at a time: what costs say of a group by itself is corrected by plans of the whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bmcompiler.codegen.groups.slices import Slices

Span = tuple[int, int, Slices]
"""First op, the one after the last, slices."""
_PLANNED = 2500
"""Ops in the plans of a run that are made to compare."""


def refined(
    spans: Sequence[Span], least: float, cost: Callable[[list[Span], float], float], count: int
) -> tuple[list[Span], float]:
    """Groups of more than one slice, changed one at a time while that makes the run cheaper, and what they cost.

    A group is left out, joined with the next one, loses or takes an op at one of its ends, or is cut twice as often: a
    slice that fills local memory is loaded when the one before it is done with.

    Args: least: what `spans` cost. cost: of spans, if it is below a bound. count: ops of the run.
    """
    found, tries, number, unchanged = list(spans), _PLANNED // count, 0, 0
    while found and tries and unchanged < len(found):
        number %= len(found)
        unchanged += 1
        for other in _changed(found, number, count):
            cycles = cost(other, least)
            tries -= 1
            if cycles < least:
                found, least, unchanged = other, cycles, 0
                break
            if not tries:
                break
        else:
            number += 1
    return found, least


def _changed(spans: list[Span], number: int, count: int) -> Iterator[list[Span]]:
    """The groups with another one in place of group `number`, or none."""
    before, (start, end, slices), after = spans[:number], spans[number], spans[number + 1 :]
    yield [*before, *after]
    if after:
        for kept in dict.fromkeys((slices, after[0][2])):
            yield [*before, (start, after[0][1], kept), *after[1:]]
    if end - start > 1:
        yield [*before, (start + 1, end, slices), *after]
        yield [*before, (start, end - 1, slices), *after]
    if start > (before[-1][1] if before else 0):
        yield [*before, (start - 1, end, slices), *after]
    if end < (after[0][0] if after else count):
        yield [*before, (start, end + 1, slices), *after]
    images, channels, rows, columns = slices
    if rows > 1:
        yield [*before, (start, end, (images, channels, 2 * rows, columns)), *after]
