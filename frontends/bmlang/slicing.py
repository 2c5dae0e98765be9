"""`x[...]`: parts of a tensor as numpy takes them, by the operators extract, index_select, squeeze and expand_dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bmcompiler.errors import UsageError
from bmcompiler.frontends.bmlang.fields import shown, whole
from bmcompiler.frontends.bmlang.tensor import Tensor
from bmcompiler.frontends.bmlang.types import DataType, ExpandDimsParam
from bmcompiler.frontends.bmlang.typings import HALVES

SELECTED = (DataType.FLOAT32, DataType.INT32, *HALVES)
"""Element types that index_select takes."""


def part(tensor: Tensor, key: Any) -> Tensor:
    """The part that a key names: per axis an integer, a slice, or a list or INT32 tensor of positions; ... and None.

    Integers take their axis away, None brings one of size 1; lists are taken each along its axis alone, so that of two
    lists all combinations stand in the result. Raises UsageError for anything else, and beyond an axis.
    """
    from bmcompiler.frontends.bmlang.operator import OPERATORS

    if tensor.shape is None:
        raise UsageError(f"{tensor!r} cannot be sliced: its shape is not known")
    keys = _full(key if isinstance(key, tuple) else (key,), tensor.shape)
    of_axes = [one for one in keys if one is not None]
    single = [axis for axis, one in enumerate(of_axes) if whole(one) is not None]
    fresh = [place for place, one in enumerate(one for one in keys if whole(one) is None) if one is None]
    ranges, lists = _picked(of_axes, tensor.shape)
    made = tensor
    if any(one != range(size) for one, size in zip(ranges, tensor.shape)):
        ends = [max(one.start, one.stop) for one in ranges]
        made = OPERATORS["extract"](made, [one.start for one in ranges], ends, [one.step for one in ranges])
    narrow = lists and tensor.dtype not in SELECTED  # index_select takes no bytes; FLOAT32 holds them exactly
    made = OPERATORS["cast"](made, dtype=DataType.FLOAT32) if narrow else made
    for axis, index in lists.items():
        made = OPERATORS["index_select"](made, axis, index)
    made = OPERATORS["cast"](made, dtype=tensor.dtype) if narrow else made
    if single:
        made = OPERATORS["squeeze"](made, single)
    for place in fresh:
        made = OPERATORS["expand_dims"](made, ExpandDimsParam(place))
    return OPERATORS["copy"](made) if made is tensor else made


def _picked(keys: Sequence[Any], shape: Sequence[int]) -> tuple[list[range], dict[int, Tensor]]:
    """The range that is kept of each axis, and by axis what is picked one by one."""
    ranges: list[range] = []
    lists: dict[int, Tensor] = {}
    for axis, (one, size) in enumerate(zip(keys, shape)):
        number = whole(one)
        if number is not None:
            ranges.append(_single(number, size, axis))
            continue
        found = _range(one, size, axis) if isinstance(one, slice) else None
        if found is None or found.step < 0:
            lists[axis] = _positions(one if found is None else list(found), size, axis)
            found = range(size)
        ranges.append(found)
    return ranges, lists


def _full(keys: tuple[Any, ...], shape: tuple[int, ...]) -> list[Any]:
    """A key for every axis, and None for new ones. Raises UsageError for more than the tensor has."""
    named = sum(each is not None and each is not Ellipsis for each in keys)
    dots = [index for index, each in enumerate(keys) if each is Ellipsis]
    if len(dots) > 1:
        raise UsageError("a key has ... once")
    if named > len(shape):
        raise UsageError(f"a key for {named} axes does not fit shape {list(shape)}")
    at = dots[0] if dots else len(keys)
    return [*keys[:at], *[slice(None)] * (len(shape) - named), *keys[at + 1 :]]


def _range(one: slice, size: int, axis: int) -> range:
    parts = (one.start, one.stop, one.step)
    if any(each is not None and whole(each) is None for each in parts) or one.step == 0:
        raise UsageError(
            f"{shown(one)} is no range of axis {axis}: start, end and step are whole numbers, step is not 0"
        )
    return range(size)[one]


def _single(number: int, size: int, axis: int) -> range:
    if not -size <= number < size:
        raise UsageError(f"{number} is no position of axis {axis} with {size} elements")
    return range(number % size, number % size + 1)


def _positions(given: Any, size: int, axis: int) -> Tensor:
    """Positions along an axis as an INT32 tensor, a constant where they are numbers."""
    if isinstance(given, Tensor):
        if given.dtype != DataType.INT32 or given.shape is None or len(given.shape) != 1:
            raise UsageError(
                f"{given!r} names no positions of axis {axis}: they are an INT32 tensor with one axis",
                remedy="masked_select takes masks, condition_select chooses by them",
            )
        return given
    array = np.array(given) if isinstance(given, (list, np.ndarray)) else np.array(None)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise UsageError(
            f"{shown(given)} is no key of axis {axis}",
            remedy="a key is a whole number, a slice, a list of them, an INT32 tensor with one axis, ... or None",
        )
    outside = [int(each) for each in array if not -size <= each < size]
    if outside:
        raise UsageError(f"{outside[0]} is no position of axis {axis} with {size} elements")
    index = Tensor(dtype=DataType.INT32, data=array % max(size, 1))
    index.constant = True
    return index
