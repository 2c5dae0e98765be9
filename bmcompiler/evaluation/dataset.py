"""Evaluating a whole data set: parts out, numbers per sample back, one score."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.errors import RuntimeUseError
from bmcompiler.evaluation.job import Evaluation, Part, PartResult
from bmcompiler.evaluation.journal import Journal
from bmcompiler.evaluation.metrics import Values
from bmcompiler.inputs.source import Samples
from bmcompiler.parallel import Pool

Array = NDArray[Any]
Progress = Callable[[Iterable[Any], str, int], Iterator[Any]]
PART = 32
"""Samples per part: long enough that sending it is nothing, short enough for a bar that moves."""


@dataclass(frozen=True)
class Evaluated:
    """The result.

    Attributes:
        score, float_score: of the compiled model and of the float network beside it, None without one.
        values: numbers per sample, by name; float_values: those of the float network.
        samples, seconds: how many there were, and the time that it took. resumed: samples taken from a journal.
    """

    metric: str
    score: float
    float_score: float | None
    values: Values
    float_values: Values | None
    samples: int
    resumed: int
    seconds: float


def evaluate(
    task: Evaluation,
    inputs: Mapping[str, Array | Samples],
    labels: Array | None,
    pool: Pool,
    *,
    part: int = PART,
    journal: Path | None = None,
    progress: Progress | None = None,
) -> Evaluated:
    """Evaluate all samples; the result does not depend on the pool, nor on where a journal was interrupted.

    Raises RuntimeUseError when there are no samples, or not as many labels as samples.
    """
    start, count = time.perf_counter(), _count(inputs, labels)
    numbers = range(-(-count // part))
    about = {"evaluation": 1, "state": task.key, "metric": task.metric.name, "output": task.output, "part": part}
    book = None if journal is None else Journal(journal, about)
    results: dict[int, PartResult] = {}
    digests: dict[int, str] = {}
    resumed = 0

    def wanted() -> Iterator[tuple[int, Part]]:
        nonlocal resumed
        for number in numbers:
            each = _part(inputs, labels, number * part, min((number + 1) * part, count))
            digests[number] = each.digest if book is not None else ""
            known = None if book is None else book.known(number, digests[number])
            if known is None:
                yield number, each
            else:
                results[number] = known
                resumed += len(next(iter(each.inputs.values())))

    try:
        found = pool.run(task, wanted())
        for number, result in found if progress is None else progress(found, "evaluating", len(numbers)):
            results[number] = result
            if book is not None:
                book.add(number, digests[number], result)
    finally:
        if book is not None:
            book.close()
    values = _joined([results[number].device for number in numbers])
    floats = [each for number in numbers if (each := results[number].float) is not None]
    float_values = _joined(floats) if floats else None
    return Evaluated(
        task.metric.name,
        task.metric.score(values),
        None if float_values is None else task.metric.score(float_values),
        values,
        float_values,
        count,
        resumed,
        time.perf_counter() - start,
    )


def _count(inputs: Mapping[str, Array | Samples], labels: Array | None) -> int:
    counts = {name: len(array) if array.ndim else 0 for name, array in inputs.items()}
    if len(set(counts.values())) != 1 or not min(counts.values()):
        shown = ", ".join(f"'{name}' {count}" for name, count in counts.items())
        raise RuntimeUseError(f"every input needs the same number of samples, one or more: {shown or 'none'}")
    count = next(iter(counts.values()))
    if labels is not None and (labels.ndim == 0 or len(labels) != count):
        given = 1 if labels.ndim == 0 else len(labels)
        raise RuntimeUseError(f"there are {count:,} samples and {given:,} labels", remedy="give one label per sample")
    return count


def _part(inputs: Mapping[str, Array | Samples], labels: Array | None, start: int, stop: int) -> Part:
    rows = {name: np.asarray(array[start:stop]) for name, array in inputs.items()}
    return Part(rows, None if labels is None else labels[start:stop])


def _joined(parts: list[Values]) -> Values:
    return {name: [number for each in parts for number in each[name]] for name in parts[0]}
