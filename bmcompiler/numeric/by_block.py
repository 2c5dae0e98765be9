"""Steps on each element of large arrays, a block at a time: what one step leaves is in the cache for the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from bmcompiler.numeric.arrays import Array

_VALUES = 1 << 15
"""Values of a block, about: some arrays of them fit the second-level cache."""


def by_block(steps: Callable[..., Array], dtype: np.dtype[Any], whole: Array, *others: Array | None) -> Array:
    """What `steps` makes of arrays, in `dtype`.

    Args:
        steps: computes each element of its result from those at the same place; has the shape of its first argument.
        whole: its first argument. others: broadcast against it.
    """
    if whole.size <= _VALUES:
        return np.asarray(steps(whole, *others)).astype(dtype, copy=False)
    out = np.empty(whole.shape, dtype)
    for block in blocks(whole.shape):
        out[block] = steps(whole[block], *(None if each is None else _part(each, block) for each in others))
    return out


def blocks(shape: tuple[int, ...], each: int = 1) -> Iterator[tuple[slice, ...]]:
    """Ranges on all axes: whole ones behind the axis that is cut, single places before it.

    each: values that stand behind an element.
    """
    behind = [each * prod(shape[axis + 1 :]) for axis in range(len(shape))]
    cut = next((axis for axis, values in enumerate(behind) if values <= _VALUES), len(shape) - 1)
    step = max(1, _VALUES // max(1, behind[cut]))
    ranges = [[slice(k, k + 1) for k in range(size)] for size in shape[:cut]]
    parts = [slice(k, min(k + step, shape[cut])) for k in range(0, shape[cut], step)]
    yield from product(*ranges, parts, *([slice(None)] for _ in shape[cut + 1 :]))


def _part(array: Array, block: tuple[slice, ...]) -> Array:
    """The part of an array that broadcasts against a block."""
    own = block[len(block) - array.ndim :]
    return array[tuple(slice(None) if size == 1 else each for size, each in zip(array.shape, own))]
