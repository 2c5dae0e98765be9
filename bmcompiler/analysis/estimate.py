"""The estimated time of a compiled network, beside what the network itself asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bmcompiler.analysis.profile import LayerTime, Timing, analysis_of
from bmcompiler.result import Result
from bmcompiler.target import LayerRow

Key = tuple[str, str]
"""Name and kind of a layer."""


def estimate(result: Result, profile: Any = None) -> Timing | None:
    """Timing of the first program, None when no plugin analyses programs of its target.

    Bounds count the multiply-accumulates that the layers have. Commands may compute more of them: rows that two tiles
    need, channels or weights that are padded.

    Args:
        profile: parameters of the timing model (`timing_profile.profile_for`), None = its defaults.
    """
    analysis = analysis_of(result.target, result.model, 0, profile)
    return None if analysis is None else needed_only(analysis.timing(), result.rows)


def needed_only(timing: Timing, rows: Iterable[LayerRow]) -> Timing:
    """With the compute bounds of layers that compute more than they need brought down to that."""
    needed: dict[Key, int] = {}
    for row in rows:
        key = row.layer, row.kind
        needed[key] = needed.get(key, 0) + row.macs
    layers = tuple(_needed(layer, needed.get((layer.name, layer.kind), 0)) for layer in timing.layers)
    spared = sum(old.compute_bound - new.compute_bound for old, new in zip(timing.layers, layers))
    return replace(timing, layers=layers, compute_bound=timing.compute_bound - spared)


def _needed(layer: LayerTime, macs: int) -> LayerTime:
    """Layers of which no multiply-accumulates are counted stay as they are."""
    if not 0 < macs < layer.macs:
        return layer
    return replace(layer, compute_bound=layer.compute_bound * macs / layer.macs)
