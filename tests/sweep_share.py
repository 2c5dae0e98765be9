"""Which sweeps a run asks that has no time for all: a part of them, drawn by a seed.

A seed draws the same part on every machine; another seed draws another, so what one commit does not ask is asked by
one of the next.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple


class Share(NamedTuple):
    """One of `parts` parts, as `seed` draws them."""

    seed: int
    parts: int

    @classmethod
    def read(cls, text: str) -> Share:
        """`SEED/PARTS`, the seed in any notation of Python; ValueError where that is not there."""
        seed, parts = text.split("/")
        share = cls(int(seed, 0), int(parts))
        if share.parts < 1:
            raise ValueError(f"a share is one of at least 1 part, not of {share.parts}")
        return share

    def holds(self, name: str) -> bool:
        """Whether the test of this name belongs to it."""
        return zlib.crc32(f"{self.seed} {name}".encode()) % self.parts == 0
