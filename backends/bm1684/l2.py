"""Tables of a program in L2, where lookup commands find them (bm1684.md 6.5)."""

from __future__ import annotations

from collections.abc import Hashable

from bmcompiler.backends.bm1684.chip import CHIP, align_up


class TableSpace:
    """The part of L2 that programs may use, filled in turn; the oldest tables give way."""

    def __init__(self) -> None:
        self._next = CHIP.l2_free[0]
        self._known: dict[Hashable, tuple[int, int]] = {}

    def place(self, key: Hashable, size: int) -> tuple[int, bool]:
        """(offset in L2, whether it must be loaded) of a table of `size` bytes that `key` stands for."""
        if key in self._known:
            return self._known[key][0], False
        first, end = CHIP.l2_free
        start = self._next if self._next + size <= end else first
        stop = start + align_up(size, CHIP.alignment)
        self._known = {k: (a, b) for k, (a, b) in self._known.items() if b <= start or stop <= a}
        self._known[key] = start, stop
        self._next = stop
        return start, True
