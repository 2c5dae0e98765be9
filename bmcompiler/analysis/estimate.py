"""The estimated time of a compiled network."""

from __future__ import annotations

from typing import Any

from bmcompiler.analysis.profile import Timing, analysis_of
from bmcompiler.result import Result


def estimate(result: Result, profile: Any = None) -> Timing | None:
    """Timing of the first program, None when no plugin analyses programs of its target.

    Args:
        profile: parameters of the timing model (`timing_profile.profile_for`), None = its defaults.
    """
    analysis = analysis_of(result.target, result.model, 0, profile)
    return None if analysis is None else analysis.timing()
