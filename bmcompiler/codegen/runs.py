"""Lists of indices as few evenly spaced runs, and runs of runs: what strided copies can move at once."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from bmcompiler.codegen.strided_copy import Dim

_MOST_PHASES = 64


@dataclass(frozen=True)
class IndexRun:
    """Position at + sum(i * axis.dst) takes the element at index start + sum(i * axis.src), over all axes."""

    at: int
    start: int
    axes: tuple[Dim, ...] = ()

    @property
    def copies(self) -> int:
        """Copies it needs: axes that run backwards are looped over."""
        return prod(axis.size for axis in self.axes if min(axis.src, axis.dst) < 0)


def runs(indices: np.ndarray, positions: np.ndarray | None = None) -> list[IndexRun]:
    """Runs that take `indices` to `positions` (0, 1, 2, ... if absent), both lists of whole numbers.

    1. neighbours with one distance join, then runs of one form with one distance, and so on (repetition, upsampling,
       tiling, interleaving)
    2. or else every P-th index is looked at by itself, as for resizing by a fraction with numerator P, and then what
       these give is joined so
    """
    places = np.arange(indices.size) if positions is None else positions
    nested = _nested(_rows(indices, places))
    phases = _phases(indices) if len(nested) > 1 else 1
    if phases == 1:
        return nested
    apart = [_nested(_rows(indices[phase::phases], places[phase::phases])) for phase in range(phases)]
    joined = _nested([run for found in apart for run in found])
    return min(nested, joined, key=lambda found: sum(run.copies for run in found))


def _nested(found: list[IndexRun]) -> list[IndexRun]:
    """Rule 1."""
    while True:
        joined = _joined(found)
        if len(joined) == len(found):
            return found
        found = joined


def _rows(indices: np.ndarray, places: np.ndarray) -> list[IndexRun]:
    """What `_joined` makes of single elements."""
    steps = np.stack([np.diff(indices), np.diff(places)])
    ends = [*(np.flatnonzero((steps[:, 1:] != steps[:, :-1]).any(axis=0)) + 1).tolist(), steps.shape[1]]
    out: list[IndexRun] = []
    first = segment = 0
    while first < indices.size:
        while segment + 1 < len(ends) and ends[segment] <= first:
            segment += 1
        count = max(1, ends[segment] - first + 1) if first < steps.shape[1] else 1
        step = steps[:, first].tolist() if count > 1 else (0, 0)
        if (count == 2 or min(step) < 0) and segment + 1 < len(ends) and ends[segment + 1] - ends[segment] > 1:
            count -= 1  # the last one begins a longer row, or one that need not be looped over
        out.append(IndexRun(int(places[first]), int(indices[first]), (Dim(count, *step),) if count > 1 else ()))
        first += count
    return out


def _joined(found: list[IndexRun]) -> list[IndexRun]:
    """Neighbours of one form and one distance as one run. Two do not join where the second begins a longer row."""
    out: list[IndexRun] = []
    first = 0
    while first < len(found):
        step = _step(found, first)
        count = 1
        while step is not None and _step(found, first + count - 1) == step:
            count += 1
        if count == 2 and (later := _step(found, first + 1)) is not None and later == _step(found, first + 2):
            count = 1
        run = found[first]
        out.append(run if count == 1 or step is None else IndexRun(run.at, run.start, (Dim(count, *step), *run.axes)))
        first += count
    return out


def _step(found: list[IndexRun], i: int) -> tuple[int, int] | None:
    """Distance (source, position) of run i to the next, None when their forms differ."""
    if i + 1 >= len(found) or found[i].axes != found[i + 1].axes:
        return None
    return found[i + 1].start - found[i].start, found[i + 1].at - found[i].at


def _phases(indices: np.ndarray) -> int:
    """How many phases, each by itself, have the fewest breaks."""

    def breaks(phases: int) -> int:
        distance = indices[phases:] - indices[:-phases]
        return phases + int(np.count_nonzero(distance[phases:] != distance[:-phases]))

    return min(range(1, min(_MOST_PHASES, max(1, len(indices) // 2)) + 1), key=breaks)
