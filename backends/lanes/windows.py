"""Windows that slide over feature maps: their geometry for evaluation and for commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bmcompiler.numeric.arrays import Array


@dataclass(frozen=True)
class Window:
    """Geometry of a command that slides a kernel; pairs are (vertical, horizontal)."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    spread: tuple[int, int]  # distance of input pixels once zeros are inserted
    before: tuple[int, int]
    after: tuple[int, int]
    out: tuple[int, int]

    @property
    def reach(self) -> tuple[int, int]:
        """Rows and columns of the padded input that the result depends on."""
        rows, columns = (
            (n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(self.out, self.stride, self.kernel, self.dilation)
        )
        return rows, columns

    def padded(self, size: tuple[int, int]) -> tuple[int, int]:
        """Size of the input with inserted zeros and padding."""
        rows, columns = (
            (n - 1) * step + 1 + a + b for n, step, a, b in zip(size, self.spread, self.before, self.after)
        )
        return rows, columns

    def prepare(self, x: Array, border: float = 0) -> Array:
        """(N, C, H, W) with `border` around and between its pixels, cropped to `reach`."""
        if x.shape[2:] == self.reach and self.before == (0, 0) and self.spread == (1, 1):
            return x
        full = np.full((*x.shape[:2], *self.reach), border, x.dtype)
        sparse = full[:, :, self.before[0] :: self.spread[0], self.before[1] :: self.spread[1]]
        rows, columns = (min(have, room) for have, room in zip(x.shape[2:], sparse.shape[2:]))
        sparse[:, :, :rows, :columns] = x[:, :, :rows, :columns]
        return full

    def taps(self, x: Array) -> Iterator[Array]:
        """For each kernel position, row by row, the pixels of the prepared `x` it meets: (N, C, OH, OW)."""
        (oh, ow), (sy, sx) = self.out, self.stride
        for r in range(self.kernel[0]):
            for s in range(self.kernel[1]):
                y0, x0 = r * self.dilation[0], s * self.dilation[1]
                yield x[:, :, y0 : y0 + (oh - 1) * sy + 1 : sy, x0 : x0 + (ow - 1) * sx + 1 : sx]


class Geometry(NamedTuple):
    """Fields of a command that slides a window over a local tensor; pairs are (vertical, horizontal).

    Attributes:
        size: rows and columns of the tensor. taps: of the window. dilations: distances of its taps.
        pads: (top, bottom, left, right) rows and columns that the command adds. steps: of the window.
        zeros: rows and columns of zeros that the command inserts after each of the tensor.
    """

    size: tuple[int, int]
    taps: tuple[int, int]
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    steps: tuple[int, int] = (1, 1)
    zeros: tuple[int, int] = (0, 0)
