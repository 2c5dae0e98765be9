"""Are two arrays the same bits, and if not, how far apart are they?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bmcompiler.numeric.arrays import Array, Mask


@dataclass(frozen=True)
class Wrong:
    """An output of a program that is not what `evaluate` gives.

    Attributes:
        name: of the output. count, size: how many elements differ, and how many there are.
        largest: largest absolute difference; NaN where one side only is not a number.
        at: index of the first element that differs. got, wanted: its value in the program and in `evaluate`.
        note: in place of these, what else is wrong: a shape, or that nothing came out (then there is no name).
    """

    name: str
    count: int
    size: int
    largest: float = 0.0
    at: tuple[int, ...] = ()
    got: float = 0.0
    wanted: float = 0.0
    note: str = ""

    def __str__(self) -> str:
        if self.note:
            return f"output '{self.name}' {self.note}" if self.name else self.note
        return (
            f"{self.count:,} of {self.size:,} elements of '{self.name}' differ, by {self.largest:g} at most; the first "
            f"at {list(self.at)}: the program gives {self.got:g}, the network {self.wanted:g}"
        )


def different(given: Array, expected: Array) -> Mask:
    """Where two arrays of one shape and type have other bits.

    Two NaN are the same whatever their bits: which payload an addition of NaN hands on is the processor's choice, here
    that of the host under both executions, and no chip's documents say it. Zeros of different signs are different.
    """
    if given.dtype.kind in "iub":
        return np.asarray(given != expected)
    bits = np.dtype(f"u{given.dtype.itemsize}")
    same = np.ascontiguousarray(given).view(bits) == np.ascontiguousarray(expected).view(bits)
    return ~(same | (np.isnan(given) & np.isnan(expected)))


def compare(got: Mapping[str, Array], wanted: Mapping[str, Array]) -> list[Wrong]:
    """The outputs that differ, in order.

    Model files hold no scalars, no bool and no 64-bit integers: shapes of one element are alike, and the device's
    integers are compared as the network's.
    """
    found = []
    for name, expected in wanted.items():
        if name not in got:
            found.append(Wrong(name, expected.size, expected.size, note="is missing"))
            continue
        given, expected = np.asarray(got[name]), np.asarray(expected)
        if given.shape != expected.shape and given.size == expected.size == 1:
            given = given.reshape(expected.shape)
        if given.dtype == np.uint16 and expected.dtype.name == "bfloat16":  # as the device's memory holds it
            given = given.view(expected.dtype)
        if given.dtype != expected.dtype and given.dtype.kind in "iub" and expected.dtype.kind in "iub":
            given, expected = given.astype(np.int64), expected.astype(np.int64)
        if (given.shape, given.dtype) != (expected.shape, expected.dtype):
            note = f"is {given.dtype}{list(given.shape)}, not {expected.dtype}{list(expected.shape)}"
            found.append(Wrong(name, expected.size, expected.size, note=note))
            continue
        where = different(given, expected)
        if where.any():
            found.append(_wrong(name, given, expected, where))
    return found


def _wrong(name: str, given: Array, expected: Array, where: Mask) -> Wrong:
    at = np.unravel_index(int(where.argmax()), where.shape)
    with np.errstate(all="ignore"):
        apart = np.abs(given[where].astype(np.float64) - expected[where].astype(np.float64))
    first = tuple(map(int, at))
    return Wrong(
        name, int(where.sum()), where.size, float(apart.max()), first, float(given[first]), float(expected[first])
    )
