"""What a choice of modes is to reach, and what it may cost."""

from __future__ import annotations

from dataclasses import dataclass

from bmcompiler.passes.quantization.choice.measured import Measured
from bmcompiler.passes.quantization.choice.ways import COARSE, DEAR, ERROR, WORTH

RUIN, MENDED = 0.5, 0.45
"""Relative error of a cluster above which cycles do not matter, and below which it is brought then."""
EXACT = 1e-4
"""Relative error of a cluster that nothing is gained below."""
MARGIN = 1.1
"""What may be missing to a bound when all trials are used up."""


@dataclass(frozen=True)
class Aim:
    """What is wanted: error of the worst cluster, cycles over those of the cheapest; None: the default."""

    error: float | None = None
    cycles: float | None = None

    @property
    def given(self) -> bool:
        """Whether anything is asked for."""
        return self.error is not None or self.cycles is not None

    @property
    def is_cheapest(self) -> bool:
        """Whether nothing may be spent on accuracy: then nothing has to be known of it."""
        return self.error is None and self.cycles is not None and self.cycles <= 1

    @property
    def wanted(self) -> float:
        """The error of a cluster that is good enough; whoever says what it may cost wants all that this buys."""
        return self.error or (ERROR if self.cycles is None else EXACT)

    def error_of(self, measured: Measured) -> float:
        """The error that an assignment is judged by; what is asked for is to hold of other samples, too."""
        return measured.worst if self.error is None else measured.promised

    def most(self, before: float, worst: float) -> float:
        """How many times the cycles of the cheapest an assignment may take: errors of the cheapest, and of it."""
        if self.given or before > RUIN:
            return self.cycles or float("inf")
        return DEAR if before > COARSE and worst <= COARSE * MARGIN else WORTH
