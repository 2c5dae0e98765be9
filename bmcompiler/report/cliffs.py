"""Layers that take many times what they have to: said with the reason, for nobody looks for what nobody suspects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bmcompiler.analysis.profile import Timing
from bmcompiler.spelling import spelled

_TIMES, _SHARE = 8, 0.1
_ADDED = ("bound_alone", "cycles", "compute", "transfer", "loaded", "stored", "parameters", "inputs", "outputs")
_LEAST = 50e-6
"""Seconds: below, what is over the bound are the starts of commands, which every layer has."""


@dataclass(frozen=True)
class Cliff:
    """A layer of more than 8 times its bound and a tenth of the time.

    Attributes:
        ratio: its time for one of the bound: of its arithmetic with every unit at work, or of its weights,
            inputs and outputs at full bandwidth, whichever is larger. share: of the time of the program.
        reason: what takes the time. remedy: what may help.
    """

    layer: str
    kind: str
    ratio: float
    share: float
    reason: str
    remedy: str

    def __str__(self) -> str:
        return (
            f"layer '{self.layer}' ({self.kind}) takes {self.share:.0%} of the time, {self.ratio:.0f} times its bound: "
            f"{self.reason}. Remedy: {self.remedy}"
        )


def find_cliffs(rows: Iterable[Mapping[str, Any]], timing: Timing) -> list[Cliff]:
    """Those among rows of a report (`report_data`), the slowest first; rows of one layer and kind are one."""
    found = []
    for row in _joined(rows):
        bound, taken = row["bound_alone"], max(row["cycles"], row["compute"], row["transfer"])
        slow = bound and taken > _TIMES * bound and row["cycles"] > _SHARE * timing.cycles
        if slow and taken >= _LEAST * timing.clock_hz:
            reason, remedy = _why(row)
            share = row["cycles"] / timing.cycles
            found.append(Cliff(row["layer"], row["kind"], taken / bound, share, reason, remedy))
    return sorted(found, key=lambda cliff: -cliff.share)


def _joined(rows: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The figures of each layer and kind, added up: both directions of a recurrence, or parts of a batch."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        known = found.setdefault((row["layer"], row["kind"]), dict(row, **dict.fromkeys(_ADDED, 0)))
        for name in _ADDED:
            known[name] += row[name]
    return found.values()


def _why(row: Mapping[str, Any]) -> tuple[str, str]:
    """What takes the time, and what may help."""
    shapes = spelled("shapes")
    if row["compute"] >= row["transfer"]:
        return "few of the lanes and units work", f"more channels, or several images at once ({shapes})"
    moved = row["loaded"] + row["stored"]
    if moved > 2 * (row["parameters"] + row["inputs"] + row["outputs"]):
        return "its values are moved again and again", f"smaller feature maps, or fewer images at once ({shapes})"
    return "its bytes move in short pieces", f"another order of axes before it, or fewer images at once ({shapes})"
