"""Parameters of a timing model that say what they mean and how well they are known; profiles with names.

A chip's profile is a dataclass of `known` fields that derives from `NamedProfile`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, ClassVar

from bmcompiler.analysis.figures import check_figures


class Standing(str, Enum):
    """How well the value of a parameter on silicon is known."""

    SURE = "measured: nearly the same when fitted on either half of the cases"
    STABLE = "measured: stays when single cases are left out"
    WEAK = "measured on few cases"
    ASSUMED = "assumed"


def known(value: float, meaning: str, standing: Standing, *, positive: bool = False) -> Any:
    """A field of a profile: its value, what it means, how well that of silicon is known, whether it must be above 0."""
    return field(default=value, metadata={"meaning": meaning, "standing": standing, "positive": positive})


@dataclass(frozen=True)
class NamedProfile:
    """Defaults of the fields are the values of the first profile that has a name.

    Raises ValueError for values that cannot be.
    """

    NAMED: ClassVar[Mapping[str, Any]] = {}
    """The profiles that have a name, "silicon" and "vendor", the default first."""
    EVIDENCE: ClassVar[Mapping[str, str]] = {}
    """What each of them was compared with."""

    def __post_init__(self) -> None:
        check_figures(self)

    def standing(self, name: str) -> str:
        """Where the value of a parameter comes from, in words."""
        value = getattr(self, name)
        if value == getattr(self.NAMED["vendor"], name) and self.nearest() == "vendor":
            return "vendor's estimate"
        (one,) = (one for one in fields(self) if one.name == name)
        return one.metadata["standing"].value if value == getattr(self.NAMED["silicon"], name) else "given"

    def nearest(self) -> str:
        """The named profile with which it has most values in common."""
        return max(self.NAMED, key=lambda name: len(fields(self)) - len(self._differences(self.NAMED[name])))

    def _differences(self, other: NamedProfile) -> list[str]:
        return [one.name for one in fields(self) if getattr(self, one.name) != getattr(other, one.name)]

    def told(self) -> Iterator[str]:
        """Name of the profile, what it was compared with, and the parameters by their standing, in words."""
        name = self.nearest()
        given = len(self._differences(self.NAMED[name]))
        yield f"timing profile {name}" + (f" with {given} other values" if given else "") + f": {self.EVIDENCE[name]}"
        values: dict[str, list[str]] = {}
        for one in fields(self):
            values.setdefault(self.standing(one.name), []).append(f"{one.name}={getattr(self, one.name):.12g}")
        yield from (f"{standing}: {' '.join(listed)}" for standing, listed in values.items())
