"""Evaluating a whole data set: parts out, numbers per sample back, one score.

What has been computed of an evaluation, line by line in a file, so that an interrupted one goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from bmcompiler.errors import FileFormatError, RuntimeUseError, UsageError
from bmcompiler.evaluation.job import Evaluation, Part, PartResult
from bmcompiler.evaluation.metrics import Values
from bmcompiler.files.store import check_regular
from bmcompiler.inputs.source import Samples
from bmcompiler.numeric.arrays import Array
from bmcompiler.options import Progress
from bmcompiler.parallel import Pool
from bmcompiler.spelling import spelled


class Journal:
    """A text file of JSON lines: first what is evaluated, then a line per part with the digest of its samples.

    A line that was cut off when the process ended is computed again.
    """

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        """Open or begin.

        Raises:
            UsageError: the file is about another model, metric or size of parts.
            FileFormatError: it is no journal, or no regular file.
        """
        self._known: dict[int, tuple[str, PartResult]] = {}
        if path.exists():
            check_regular(path)
        whole = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        lines = [line for line in whole if line.endswith(b"\n")]
        if whole and not lines and not _line(about).startswith(whole[0]):
            lines = whole  # not what was cut off while it was begun: something else, which is not written over
        if lines:
            self._read(path, about, lines)
        self._stream: IO[bytes] = path.open("wb")
        self._stream.writelines(lines or [_line(about)])
        self._stream.flush()

    def _read(self, path: Path, about: dict[str, Any], lines: list[bytes]) -> None:
        try:
            first, *rest = map(json.loads, lines)
            self._known = {
                int(each["part"]): (str(each["digest"]), PartResult(each["device"], each["float"])) for each in rest
            }
        except (ValueError, KeyError, TypeError):
            remedy = "give the file of an interrupted bmnet-eval, or a new name"
            raise FileFormatError("not a journal of an evaluation", file=path, remedy=remedy) from None
        if first != about:
            different = ", ".join(
                sorted(key for key in about if not isinstance(first, dict) or first.get(key) != about[key])
            )
            raise UsageError(
                f"{path} belongs to another evaluation (different: {different})",
                remedy=f"give another {spelled('journal')} file",
            )

    def known(self, number: int, digest: str) -> PartResult | None:
        """The result of a part of exactly these samples, None where it is not there."""
        found = self._known.get(number)
        return found[1] if found is not None and found[0] == digest else None

    def add(self, number: int, digest: str, result: PartResult) -> None:
        """Write a result; it is on disk when this returns."""
        line = {"part": number, "digest": digest, "device": result.device, "float": result.float}
        self._stream.write(_line(line))
        self._stream.flush()

    def close(self) -> None:
        """Close the file, which stays."""
        self._stream.close()


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"


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
