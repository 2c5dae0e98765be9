"""The first samples of a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.inputs.source import InputData, Named, Samples, Source
from bmcompiler.numeric.arrays import Array, Ints


class LimitedSource(Source):
    """The first `limit` samples of another source, all of them where it has fewer."""

    def __init__(self, source: Source, limit: int) -> None:
        """Raises UsageError for a limit below 1."""
        self.source, self.limit = source, checked_limit(limit)

    def bind(self, inputs: Sequence[Named]) -> InputData:
        whole = self.source.bind(inputs)
        count = max((len(array) for array in whole.values() if array.ndim), default=0)
        if count <= self.limit:
            return whole
        told = None if whole.description is None else f"the first {self.limit:,} of {whole.description}"
        names = None if whole.names is None else whole.names[: self.limit]
        return InputData(first_samples(whole, self.limit), whole.file, told, names)


class FirstSamples(Samples):
    """The first `count` of other samples."""

    def __init__(self, samples: Samples, count: int) -> None:
        self._samples = samples
        self.shape, self.dtype = (count, *samples.shape[1:]), samples.dtype

    def take(self, indices: Sequence[int] | Ints) -> Array:
        return self._samples.take(indices)


def first_samples(arrays: Mapping[str, Array | Samples], limit: int) -> dict[str, Array | Samples]:
    """Each input's first `limit` samples. Raises UsageError for a limit below 1."""
    checked_limit(limit)
    return {name: _first(array, limit) for name, array in arrays.items()}


def checked_limit(limit: int) -> int:
    """`limit` itself. Raises UsageError when it is below 1."""
    if limit < 1:
        raise UsageError(f"the limit of samples must be 1 or more, got {limit}")
    return limit


def _first(array: Array | Samples, limit: int) -> Array | Samples:
    if isinstance(array, Samples):
        return array if len(array) <= limit else FirstSamples(array, limit)
    return np.asarray(array)[:limit] if np.ndim(array) else array
