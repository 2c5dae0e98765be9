"""Samples that neither calibration nor a choice sees, so that what is measured on them is true of others as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bmcompiler.inputs.source import InputData, Samples
from bmcompiler.inputs.spread import spread
from bmcompiler.numeric.arrays import Array, Ints

ENOUGH = 64
"""With so many samples some are held back; of fewer each is needed."""
_EACH = 4
"""One of so many is."""


class SomeSamples(Samples):
    """Those of other samples that have certain numbers."""

    def __init__(self, samples: Samples, numbers: Ints) -> None:
        self._samples, self._numbers = samples, numbers
        self.shape, self.dtype = (len(numbers), *samples.shape[1:]), samples.dtype

    def take(self, indices: Sequence[int] | Ints) -> Array:
        return self._samples.take(self._numbers[np.asarray(indices, np.int64)])


def parted(data: InputData) -> tuple[InputData, InputData] | None:
    """What calibrates, and one of each four samples, held back; None where there are fewer than ENOUGH.

    So it is, too, where inputs have different numbers of samples: then nobody knows which belong together.
    """
    counts = {len(array) if array.ndim else 0 for array in data.values()}
    count = counts.pop() if len(counts) == 1 else 0
    if count < ENOUGH:
        return None
    few = spread(count // _EACH, count)
    rest = np.setdiff1d(np.arange(count), few)
    told = f"{len(rest):,} of {data.description or f'{count:,} samples'} ({len(few):,} are held back to judge by)"
    return _some(data, rest, told), _some(data, few, None)


def _some(data: InputData, numbers: Ints, told: str | None) -> InputData:
    arrays: Mapping[str, Array | Samples] = {
        name: SomeSamples(array, numbers) if isinstance(array, Samples) else np.asarray(array)[numbers]
        for name, array in data.items()
    }
    names = None if data.names is None else [data.names[number] for number in numbers]
    return InputData(arrays, data.file, told, names)
