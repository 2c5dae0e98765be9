"""Reproducible contents of memory for recorded instructions: one image of bytes, one of ordinary floats."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1684.chip import CHIP

GLOBAL_BYTES = 1 << 21


def local_image(floats: bool) -> NDArray[np.uint8]:
    """Local memory (lanes, bytes of a lane): random bytes, or words that are floats between 2**-8 and 2**8.

    One float in 64 is a zero, one in 128 a denormal, of either sign.
    """
    raw = np.frombuffer(np.random.RandomState(1684).bytes(CHIP.lanes * CHIP.lmem_size), np.uint8)
    if floats:
        raw = _floats(raw.view("<u4")).view(np.uint8)
    return raw.reshape(CHIP.lanes, CHIP.lmem_size)


def global_image() -> NDArray[np.uint8]:
    """The first 2 MiB of global memory: floats in the first half, random bytes in the second."""
    raw = np.frombuffer(np.random.RandomState(4861).bytes(GLOBAL_BYTES), np.uint8)
    half = GLOBAL_BYTES // 2
    return np.concatenate([_floats(raw[:half].view("<u4")).view(np.uint8), raw[half:]])


def _floats(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    exponent = 119 + ((words >> 23) & 15)
    plain = (words & 0x807FFFFF) | exponent << 23
    kind = (words >> 23) & 0xFF
    return np.where(kind < 4, words & 0x80000000, np.where(kind < 6, words & 0x807FFFFF, plain)).astype("<u4")
