"""Groups of kernels that use the sort engine, too; model files have none."""

from __future__ import annotations

from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.instructions.order import Polled

HAU_BYTES = 144
"""Of a command of the sort engine."""


class KernelGroup(CommandGroup):
    """Commands of three engines, and what orders those of the sort engine."""

    _polled: Polled

    def __new__(cls, tiu: bytes, gdma: bytes, polled: Polled) -> KernelGroup:
        """The group of these streams."""
        made = super().__new__(cls, tiu, gdma)
        made._polled = polled
        return made

    @property
    def polled(self) -> Polled:
        return self._polled
