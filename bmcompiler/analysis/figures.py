"""What figures of a timing profile can be, on every chip: `*_hz` are hertz, `*_rate` bytes per second."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

LEAST = 1e6
"""Hertz, or bytes per second, that no clock and no memory falls below: smaller figures are in another unit."""
_UNITS = {"_rate": "bytes per second", "_hz": "hertz"}


def check_figures(profile: Any) -> None:
    """Raise ValueError for a parameter of the dataclass that cannot be: see `LEAST`.

    Parameters whose metadata says `positive: False` may be 0, all others are more.
    """
    for one in fields(profile):
        value, positive = getattr(profile, one.name), one.metadata.get("positive", True)
        if value < 0 or (positive and not value):
            raise ValueError(f"{one.name} must {'be positive' if positive else 'not be negative'}, got {value}")
        unit = next((unit for ending, unit in _UNITS.items() if one.name.endswith(ending)), None)
        if unit and value < LEAST:
            raise ValueError(f"{one.name} is in {unit}, {value:g} cannot be")
