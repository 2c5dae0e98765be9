"""What figures of a timing profile can be, on every chip: `*_hz` are hertz, `*_rate` bytes per second."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

LEAST_RATE = 1e6
"""Bytes per second that no memory falls below: smaller figures are in another unit."""


def check_figures(profile: Any) -> None:
    """Raise ValueError for a parameter of the dataclass that cannot be: see `LEAST_RATE`.

    Parameters whose metadata says `positive: False` may be 0, all others are more.
    """
    for one in fields(profile):
        value, positive = getattr(profile, one.name), one.metadata.get("positive", True)
        if value < 0 or (positive and not value):
            raise ValueError(f"{one.name} must {'be positive' if positive else 'not be negative'}, got {value}")
        if one.name.endswith("_rate") and value < LEAST_RATE:
            raise ValueError(f"{one.name} is in bytes per second, {value:g} cannot be")
