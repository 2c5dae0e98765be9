"""Which layers lie in which group, in how many slices, and how much of local memory they use."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import prod
from typing import Any

from bmcompiler.report.tables import short

_AXES = "nchw"


def group_section(data: dict[str, Any]) -> str:
    """One box per group with a chip for each of its layers, in program order; nothing for chips without groups."""
    groups = data["groups"]
    if not groups:
        return ""
    largest = max(group["lane_bytes"] for group in groups) or 1
    cycles: dict[str, int] = {}
    for layer in data["layers"]:
        cycles[layer["layer"]] = cycles.get(layer["layer"], 0) + layer.get("cycles", 0)
    longest = max(cycles.values(), default=0) or 1
    boxes = "".join(_box(group, largest, cycles, longest) for group in groups)
    text = (
        "Layers in one box pass values on in local memory, whole or in slices. The bar under a box shows the most "
        f"bytes of a lane in use meanwhile (full width: {largest:,}); the stronger a layer's colour, the more cycles."
    )
    return f'<h2>Groups</h2><p class="small">{text}</p><div class="groups">{boxes}</div>'


def _box(group: dict[str, Any], largest: int, cycles: dict[str, int], longest: int) -> str:
    chips = "".join(_chip(name, cycles.get(name, 0), longest) for name in group["layers"])
    use = 100 * group["lane_bytes"] / largest
    several = "several" if len(group["layers"]) > 1 else ""
    facts = [f"group {group['number']}", _slices(group["slices"]), f"{short(group['lane_bytes'])}B per lane"]
    head = f"<b>{group['number']}</b> {escape(_slices(group['slices']))}"
    meter = f'<div class="meter"><i style="width:{use:.1f}%"></i></div>'
    tooltip = escape(", ".join(filter(None, facts)), quote=True)
    return f'<div class="group {several}" title="{tooltip}"><span>{head}</span>{chips}{meter}</div>'


def _chip(name: str, cycles: int, longest: int) -> str:
    shade = 8 + 62 * cycles / longest
    tooltip = escape(f"{name}: {cycles:,} cycles", quote=True)
    return f'<i class="chip" style="--shade:{shade:.0f}%" title="{tooltip}">{escape(_brief(name))}</i>'


def _brief(name: str) -> str:
    """The first of the source layers of an op, and how many more it has."""
    first, *more = name.split("+")
    return f"{first} +{len(more)}" if more else first


def _slices(slices: Sequence[int]) -> str:
    """As in "4 slices (h 4)"; nothing for one."""
    if prod(slices) <= 1:
        return ""
    axes = _AXES if len(slices) == len(_AXES) else ["axis " + str(axis) for axis in range(len(slices))]
    return (
        f"{prod(slices)} slices ("
        + ", ".join(f"{axis} {count}" for axis, count in zip(axes, slices) if count > 1)
        + ")"
    )
