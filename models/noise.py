"""Seeded noise in place of samples, for measurements that ask for time and bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PIXELS = ("yolox_chars", "res10_ssd_face")
"""Networks that take pixels as they are; numbers around 0 are black pictures to them, in which they see nothing."""


def noise(name: str, shape: Sequence[int]) -> NDArray[np.float32]:
    """Samples for a network of `shapes.json`: normal numbers, or pixels from 0 to 255."""
    random = np.random.default_rng(0)
    if name in PIXELS:
        return random.uniform(0, 255, shape).astype(np.float32)
    return random.standard_normal(shape, np.float32)
