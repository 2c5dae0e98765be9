"""The sentence of the summary about a choice of modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_NAMED = 8
"""Layers on the host that are named, at most."""


def summary(
    layers: Mapping[str, int],
    floats: Sequence[str],
    errors: Sequence[float],
    worst: str,
    ratio: float,
    *,
    on_host: bool,
) -> str:
    """What was chosen and measured.

    Args:
        layers: how many there are of each mode. floats: names of those that are float, on the host or on the chip.
        errors: relative, of the choice and of the cheapest. worst: the output that is furthest off, of several.
        ratio: cycles over those of the cheapest.
    """
    text = ", ".join(f"{count} {mode}" for mode, count in layers.items() if count) or "none"
    kept = f", {len(floats)} layers in float" if floats else ""
    if floats and on_host:
        kept += f" on the host ({', '.join(floats[:_NAMED])}{', ...' if len(floats) > _NAMED else ''})"
    output = f" (output {worst})" if worst else ""
    return (
        f"quantization modes: {text}{kept}; outputs are at most {errors[0]:.2%} from float on "
        f"samples that the choice had not seen{output}, {errors[1]:.2%} with the fewest cycles, "
        f"of which the choice takes {ratio:.2f} times"
    )
