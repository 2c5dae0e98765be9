"""What a model file says of sizes that vary: a line among the notes of each program, a JSON list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bmcompiler.bmodel.layers import SIZES
from bmcompiler.bmodel.model import BModel, Stage
from bmcompiler.errors import FileFormatError

Axis = tuple[int, int]
"""(number of an input or output, axis)."""


@dataclass(frozen=True)
class Size:
    """A size in which the programs of a net differ.

    Attributes:
        axes: of the inputs, which always have it in common. cuts: of the outputs, which have it, too.
        mixes: why an input must not be padded along it; "" where it may be, with zeros.
    """

    axes: tuple[Axis, ...]
    cuts: tuple[Axis, ...]
    mixes: str = ""

    @property
    def counts_samples(self) -> bool:
        """Whether it is the leading axis."""
        return all(axis == 0 for _, axis in self.axes)


def note(model: BModel, sizes: Sequence[Size]) -> None:
    """Let all programs of a model say it."""
    text = [[one.axes, one.cuts, one.mixes] for one in sizes]
    model.note(SIZES, json.dumps(text, separators=(",", ":"), ensure_ascii=False) if text else "")


def decoded(text: str) -> list[Size]:
    """What a model file says; [] where it says nothing. Raises FileFormatError for what is no such text."""
    if not text:
        return []
    try:
        return [Size(_axes(axes), _axes(cuts), mixes) for axes, cuts, mixes in json.loads(text)]
    except (ValueError, TypeError, RecursionError) as error:
        raise FileFormatError(f"what the model says of its sizes is malformed ({error})") from error


def described(stages: Sequence[Stage]) -> list[str]:
    """A line for each size that varies among the programs of a net, for the user. Raises FileFormatError."""
    lines = []
    for size in decoded(stages[0].sizes):
        inputs = stages[0].inputs
        where = ", ".join(f"axis {axis} of {inputs[index].name or f'input {index}'}" for index, axis in size.axes)
        index, axis = size.axes[0]
        known = ", ".join(map(str, sorted({stage.inputs[index].shape[axis] for stage in stages})))
        lines.append(f"{where}: {known}; {size.mixes or 'others are filled up with zeros to the next larger'}")
    return lines


def _axes(pairs: Any) -> tuple[Axis, ...]:
    found = tuple((index, axis) for index, axis in pairs)
    if not all(type(number) is int and 0 <= number < 64 for pair in found for number in pair):
        raise ValueError("no list of axes")
    return found
