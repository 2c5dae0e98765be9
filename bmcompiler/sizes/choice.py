"""Which program takes an input, how it is filled up to the program's shape, and what is cut off the outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from bmcompiler.sizes.note import Axis, Size

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Fit:
    """Inputs that are smaller than a program, or of its very shapes.

    Attributes:
        program: its number. shapes: of its inputs; axis 0 as given where it was left open.
        given: (input, axis) -> the size that was given. cuts: likewise of outputs, where they have more.
        samples: how many were given, where they run in steps of the program's number; None: it takes them at once.
    """

    program: int
    shapes: tuple[Shape | None, ...]
    given: Mapping[Axis, int]
    cuts: Mapping[Axis, int]
    samples: int | None = None

    def input_shape(self, index: int, shape: Shape) -> Shape:
        """The shape that an input was given in, or would be: `shape` is that of the program."""
        return tuple(self.given.get((index, axis), size) for axis, size in enumerate(shape))

    def output_shape(self, index: int, shape: Shape) -> Shape:
        """The shape of an output after the cut."""
        return tuple(self.cuts.get((index, axis), size) for axis, size in enumerate(shape))

    def filled(self, index: int, value: Any, zero: float = 0) -> Any:
        """An input of the program's shape; `zero` is the number that stands for 0. Returns `value` where it has it."""
        wanted = self.shapes[index]
        if wanted is None or tuple(value.shape) == wanted:
            return value
        array = np.asarray(value)
        out = np.full(wanted, zero, array.dtype)
        out[tuple(map(slice, array.shape))] = array
        return out

    def cut(self, index: int, array: Any) -> Any:
        """An output without what belongs to filled positions."""
        wanted = self.output_shape(index, array.shape)
        return array if wanted == array.shape else np.ascontiguousarray(array[tuple(map(slice, wanted))])


def fit(
    programs: Sequence[Sequence[Shape]],
    sizes: Sequence[Size],
    given: Sequence[Shape | None],
    any_samples: bool = False,
) -> Fit | None:
    """The smallest program that inputs of these shapes fit into; None where there is none.

    Args:
        programs: the shapes of the inputs of each. given: None where a program has no need of an input, or where it
            follows from others.
        any_samples: whether axis 0 of inputs is left open: they run in steps.
    """
    found: list[tuple[int, Fit]] = []
    for number, shapes in enumerate(programs):
        lengths = _lengths(shapes, sizes, given, any_samples)
        if lengths is None:
            continue
        smaller = {size: n for size, n in lengths.items() if n is not None}
        at = {axis: n for size, n in smaller.items() for axis in size.axes}
        cuts = {axis: n for size, n in smaller.items() for axis in size.cuts}
        wanted = tuple(
            None if one is None else (one[0], *shape[1:]) if any_samples and shape else shape
            for one, shape in zip(given, shapes)
        )
        found.append((sum(map(prod, shapes)), Fit(number, wanted, at, cuts)))
    return min(found, key=lambda one: one[0])[1] if found else None


def fit_in_steps(
    programs: Sequence[Sequence[Shape]], sizes: Sequence[Size], given: Sequence[Shape | None]
) -> Fit | None:
    """As `fit`, but that samples, which axis 0 counts, are not filled up: any number of them runs in steps.

    Programs of these very shapes come first; else the one with the most samples of those that are filled by what was
    given, else that with the fewest. None where inputs do not fit, or positions along axis 0 are mixed.
    """
    filled = fit(programs, sizes, given, any_samples=True) if sizes else None
    filled = filled or Fit(0, tuple(given), {}, {})
    for number, shapes in enumerate(programs):
        if len(shapes) == len(given) and all(b in (None, a) for a, b in zip(shapes, filled.shapes)):
            return replace(filled, program=number)
    fitting = [n for n, shapes in enumerate(programs) if _same_but_for_samples(shapes, filled.shapes)]
    counts = {shape[0] for shape in filled.shapes if shape}
    if not fitting or len(counts) != 1 or any(size.mixes and size.counts_samples for size in sizes):
        return None
    (count,) = counts

    def samples(number: int) -> int:
        return programs[number][0][0]

    whole = [number for number in fitting if samples(number) <= count]
    return replace(filled, program=max(whole, key=samples) if whole else min(fitting, key=samples), samples=count)


def _same_but_for_samples(shapes: Sequence[Shape], given: Sequence[Shape | None]) -> bool:
    same = all(b is not None and len(a) == len(b) and a[1:] == b[1:] for a, b in zip(shapes, given))
    return same and len(shapes) == len(given) and len({shape[0] for shape in shapes}) == 1


def _lengths(
    shapes: Sequence[Shape], sizes: Sequence[Size], given: Sequence[Shape | None], any_samples: bool
) -> dict[Size, int | None] | None:
    """What was given of each size, None where it is all; None where the inputs do not fit."""
    of = {axis: size for size in sizes for axis in size.axes}
    lengths: dict[Size, int | None] = {}
    if len(shapes) != len(given):
        return None
    for index, (shape, one) in enumerate(zip(shapes, given)):
        if one is None:
            continue
        if len(shape) != len(one):
            return None
        for axis, (most, n) in enumerate(zip(shape, one)):
            if any_samples and axis == 0:
                continue
            size = of.get((index, axis))
            smaller = None if n == most else n
            if smaller is not None and (size is None or size.mixes or not 0 < n < most):
                return None
            if size is not None and lengths.setdefault(size, smaller) != smaller:
                return None
    return lengths


def why_not(
    sizes: Sequence[Size], programs: Sequence[Sequence[Shape]], given: Sequence[Shape | None], names: Sequence[str]
) -> str:
    """What forbids to fill up the axes in which inputs differ from all programs; "" where nothing is known of them."""
    for size in sizes:
        index, axis = size.axes[0]
        one = given[index] if index < len(given) else None
        known = sorted({shapes[index][axis] for shapes in programs})
        if size.mixes and one is not None and axis < len(one) and one[axis] not in known:
            return (
                f"axis {axis} of '{names[index]}' has to be {', '.join(map(str, known[:-1]))} or {known[-1]}, "
                f"for it cannot be padded: {size.mixes}"
            )
    return ""
