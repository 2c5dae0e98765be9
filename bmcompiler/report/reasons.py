"""Why layers run on the host CPU, reason by reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bmcompiler.target import LayerRow

BORDER = ("quantize", "dequantize")
"""Conversions at the border of a CPU subnet: they are there because of the layers beside them."""


@dataclass(frozen=True)
class Reason:
    """A reason, the layers that it holds for (each once, in program order) and their ops.

    Attributes:
        text: as it is for the first layer. texts: for each of the layers; they may differ in numbers.
    """

    text: str
    layers: tuple[str, ...]
    texts: tuple[str, ...]
    ops: tuple[str, ...]


def host_reasons(rows: Iterable[LayerRow]) -> list[Reason]:
    """The reasons of a compilation, those of most layers first; conversions at borders have none of their own."""
    found: dict[str, dict[str, LayerRow]] = {}
    ops: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.where == "cpu" and row.kind not in BORDER:
            kind = without_numbers(row.reason)
            found.setdefault(kind, {}).setdefault(row.layer, row)
            ops.setdefault(kind, {})[row.kind] = None
    reasons = [
        Reason(
            next(iter(layers.values())).reason,
            tuple(layers),
            tuple(r.reason for r in layers.values()),
            tuple(ops[kind]),
        )
        for kind, layers in found.items()
    ]
    return sorted(reasons, key=lambda reason: -len(reason.layers))


def without_numbers(text: str) -> str:
    """What sentences have in common that differ in their figures."""
    return re.sub(r"-?\d[\d.,]*", "#", text)
