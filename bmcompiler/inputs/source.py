"""What a source of samples is, before and after it knows the network's inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from bmcompiler.errors import CalibrationError
from bmcompiler.numeric.arrays import Array, Ints


class Named(Protocol):
    """A network input: a function's argument or a `TensorInfo`."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


class Samples(ABC):
    """Samples that are read when they are needed; slices and `numpy.asarray` give arrays.

    `shape` is (samples, *shape of one); `dtype` that of the arrays.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @abstractmethod
    def take(self, indices: Sequence[int] | Ints) -> Array:
        """The samples with these numbers, (len(indices), *shape[1:]). Raises BMError naming the file at fault."""

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of axes, the samples' one included."""
        return len(self.shape)

    def __getitem__(self, part: slice) -> Array:
        return self.take(range(*part.indices(len(self))))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype)


class InputData(Mapping[str, "Array | Samples"]):
    """Samples by input name. Raises CalibrationError for what makes no array.

    Attributes:
        file: what messages call the source.
        description: "128 images from photos, rgb, ..." for summaries; None when there is nothing to tell.
        names: what to call each sample (file names), where the source knows.
    """

    def __init__(
        self,
        arrays: Mapping[str, Array | Samples],
        file: object = None,
        description: str | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.file, self.description, self.names = file, description, names
        self._arrays = {name: self._array(name, given) for name, given in arrays.items()}

    def _array(self, name: str, given: object) -> Array | Samples:
        """What is given as an array: lists and tensors of other libraries are."""
        if isinstance(given, Samples):
            return given
        try:
            return np.asarray(given)
        except ValueError as error:
            remedy = "give one array, or lists that nest as deep and as long everywhere"
            raise CalibrationError(f"'{name}' has parts of different lengths", file=self.file, remedy=remedy) from error

    def __getitem__(self, name: str) -> Array | Samples:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class Source(ABC):
    """Samples of a network that is not known yet."""

    @abstractmethod
    def bind(self, inputs: Sequence[Named]) -> InputData:
        """The samples for these inputs. Raises BMError when they cannot be told apart or do not fit."""


Data: TypeAlias = "Mapping[str, Array] | Mapping[str, Array | Samples] | Source"
"""What takes samples takes any of these."""


def take(samples: Array | Samples, start: int, stop: int) -> Array:
    """Samples start..stop-1; counting starts again at the first after the last."""
    indices = np.arange(start, stop) % len(samples)
    return samples.take(indices) if isinstance(samples, Samples) else np.take(samples, indices, axis=0)
