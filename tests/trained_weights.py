"""Weights and biases as training leaves them, seeded ones never are: scales over decades, dead channels, outliers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def trained_layer(rng: np.random.Generator, shape: tuple[int, ...], axis: int = 0) -> tuple[Floats, Floats]:
    """Weight of `shape` and bias of its output channels, which lie along `axis`.

    1. Channels differ by up to three decades, as those that a norm was folded into.
    2. One in eight is dead: all its weights are 0, and its bias is not.
    3. Single weights are ten times the others.
    4. Biases lie up to hundreds of times what the weights of the channel make, of both signs.
    """
    channels = shape[axis]
    weight = rng.standard_normal(shape) / np.sqrt(np.prod(shape) / channels)
    weight *= np.where(rng.random(shape) < 0.02, 10, 1)
    along = [1] * len(shape)
    along[axis] = channels
    gain = 10.0 ** rng.uniform(-2, 1, channels)
    dead = rng.random(channels) < 1 / 8
    weight *= np.where(dead, 0, gain).reshape(along)
    bias = gain * rng.standard_normal(channels) * 10.0 ** rng.uniform(-1, 2.5, channels)
    return weight.astype(np.float32), bias.astype(np.float32)
