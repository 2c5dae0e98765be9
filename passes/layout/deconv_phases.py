"""Where the products of a transposed convolution are when its results are taken apart into phases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from bmcompiler.ops.layers.nn import Deconv

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class PhaseAxis:
    """One axis of a deconv as a convolution of stride 1 whose results are the phases of rows or columns.

    Result y = q * stride + r - skip is phase r of cell q. It adds input q + d times tap r + pad - d * stride of the
    window, for all d for which there is one.
    """

    size: int
    """Inputs."""
    kernel: int
    stride: int
    pad: int
    """Places of the window before the first of all cells."""
    skip: int
    """Results before the first one that the deconv has."""
    out: int
    """Results that it has."""

    @property
    def first(self) -> int:
        """The least d of a phase."""
        return -((self.kernel - 1 - self.pad) // self.stride)

    @property
    def taps(self) -> int:
        """How many d there are, for all phases."""
        return (self.stride - 1 + self.pad) // self.stride - self.first + 1

    @property
    def pads(self) -> tuple[int, int]:
        """Of the convolution, so that it makes all cells."""
        cells = -(-(self.skip + self.out) // self.stride)
        return -self.first, max(0, cells - 1 + self.first + self.taps - self.size)

    @property
    def cells(self) -> int:
        """That it makes; not all are read where the deconv cuts more than a cell away."""
        return self.size + sum(self.pads) - self.taps + 1

    @property
    def is_whole(self) -> bool:
        """Whether the deconv has all results of all cells."""
        return not self.skip and self.cells * self.stride == self.out

    def places(self) -> np.ndarray:
        """Places in the window by phase and tap; `kernel`, behind the window, where there is none."""
        import numpy as np

        d = self.first + np.arange(self.taps)
        found = np.arange(self.stride)[:, None] + self.pad - d * self.stride
        return np.where((found >= 0) & (found < self.kernel), found, self.kernel)


Phases = tuple[PhaseAxis, PhaseAxis]


def ways(op: Deconv) -> Iterator[Phases]:
    """Ways to cut a deconv without dilations: from its first result on, or where windows need the fewest taps."""
    found = list(dict.fromkeys(product(_axes(op, 0), _axes(op, 1))))
    yield from (axes for axes in found if all(axis.first <= 0 for axis in axes))


def _axes(op: Deconv, axis: int) -> list[PhaseAxis]:
    kernel, stride, pad = op.weight.shape[2 + axis], op.strides[axis], op.pads[2 * axis]
    skips = [
        PhaseAxis(op.input.shape[2 + axis], kernel, stride, pad - skip, skip, op.type.shape[2 + axis])
        for skip in range(min(stride, pad + 1))
    ]
    return [skips[0], min(skips, key=lambda each: each.taps)]


def phase_weights(weight: np.ndarray, axes: Phases, group: int, kept: int = 1) -> np.ndarray:
    """Weights (C, O/group, KH, KW) of a deconv as those of a convolution: (kept, phases, O/kept, C/kept, taps, taps).

    kept: groups of the convolution, all of those of the deconv or one, with zeros on the channels of other groups.
    """
    import numpy as np

    c, o, kh, kw = weight.shape
    joined = group // kept
    whole = np.zeros((kept, joined, c // group, joined, o, kh + 1, kw + 1), weight.dtype)
    each = np.arange(joined)
    whole[:, each, :, each, :, :kh, :kw] = weight.reshape(kept, joined, c // group, o, kh, kw).swapaxes(0, 1)
    down, across = (axis.places() for axis in axes)
    taken = whole.reshape(kept, c // kept, joined * o, kh + 1, kw + 1)[..., down[:, :, None, None], across]
    phases = taken.transpose(0, 3, 5, 2, 1, 4, 6)
    return phases.reshape(kept, -1, joined * o, c // kept, down.shape[1], across.shape[1])
