"""Weights of convolutions as the device takes them."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.dv.arithmetic.run_model import RunWeights
from bmcompiler.backends.dv.kernels.base import half_weights
from bmcompiler.numeric.arrays import Array


def filters_of(weight: Array, bias: Array | None = None) -> RunWeights:
    """Weights [m][c][ky][kx] and biases [m] as they stand, in fp16; no bias is zeros."""
    given = np.zeros(len(weight), np.float32) if bias is None else bias
    return RunWeights(half_weights(weight), half_weights(given))


def across_groups(weight: Array, groups: int) -> Array:
    """Weights [m][c / groups][ky][kx] as [m][c][ky][kx], zeros for the channels of other groups (dv.md 1.6)."""
    m, per, ky, kx = weight.shape
    out = np.zeros((groups, m // groups, groups, per, ky, kx), weight.dtype)
    index = np.arange(groups)
    out[index, :, index] = weight.reshape(groups, m // groups, per, ky, kx)
    return out.reshape(m, groups * per, ky, kx)


def with_gaps(weight: Array, down: int, across: int) -> Array:
    """A dilated kernel written out, zeros in its gaps."""
    m, c, ky, kx = weight.shape
    out = np.zeros((m, c, (ky - 1) * down + 1, (kx - 1) * across + 1), weight.dtype)
    out[:, :, ::down, ::across] = weight
    return out
