"""The roofline picture: how far every layer is from what arithmetic and bus allow."""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, degrees, log10, sqrt
from typing import Any

from bmcompiler.report.svg import decades, line, svg, title, words
from bmcompiler.report.tables import legend, short

_WIDTH, _HEIGHT = 1000.0, 470.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 110.0, 40.0, 20.0, 66.0
_NET = 9.0  # half the width of the mark of the whole net
_LARGEST, _SMALLEST = 15.0, 3.5  # radius of dots


@dataclass(frozen=True)
class _Dot:
    """Multiply-accumulates, or what arithmetic of another kind is worth; the bytes and cycles that go with them.

    `computes`: whether arithmetic keeps its engine busy for longer than its bytes keep theirs.
    """

    name: str
    work: float
    nbytes: float
    cycles: float
    share: float
    facts: str
    computes: bool = True

    @property
    def intensity(self) -> float:
        return self.work / self.nbytes

    @property
    def speed(self) -> float:
        return self.work / self.cycles


def roofline_section(data: dict[str, Any]) -> str:
    """A plot with logarithmic axes, one dot per layer; nothing where peak and bandwidth are not known."""
    timing = data["timing"]
    if timing is None or not (timing["peak_macs"] and timing["bus_bytes_per_cycle"]):
        return ""
    found = [(layer, _dot(layer, timing)) for layer in data["layers"]]
    dots = [dot for _, dot in found if dot is not None]
    if not dots:
        return ""
    others = sum(dot is None and layer["cycles"] > 0 for layer, dot in found)
    note = f" Layers that only move data have no place here: {others}." if others else ""
    text = (
        "Each dot is a layer, as large as its share of the time: the multiply-accumulates it makes per cycle over "
        "those it needs per byte of its weights, inputs and outputs. Arithmetic of other kinds counts as the multiply-"
        "accumulates that would take as long. Dots above the slope get their inputs from local memory. Colours say "
        "which engines the layer keeps busy for longer."
    )
    colours = legend("", [("c", "computes for longer"), ("s", "moves bytes for longer"), ("net", "the whole net")])
    return f'<h2>Roofline</h2><p class="small">{text}{note}</p>{colours}{_picture(dots, _whole(timing), timing)}'


def _dot(layer: dict[str, Any], timing: dict[str, Any]) -> _Dot | None:
    work = layer["compute_bound"] * timing["peak_macs"]
    nbytes = layer["parameters"] + layer["inputs"] + layer["outputs"]
    time = max(layer["cycles"], layer["compute"], layer["transfer"])
    if not (work and nbytes and time):
        return None
    share = layer["cycles"] / timing["cycles"] if timing["cycles"] else 0.0
    counted = f"{layer['macs']:,} MACs" if layer["macs"] else "arithmetic"
    counted += "" if round(work) == layer["macs"] else f" that takes as long as {work:,.0f} MACs at full rate"
    busy = f"busy: arithmetic {layer['compute']:,}, transfers {layer['transfer']:,}"
    facts = f"{layer['kind']}, {layer['cycles']:,} cycles ({share:.1%}), {busy}, {counted}, {nbytes:,} bytes"
    return _Dot(layer["layer"], work, nbytes, time, share, facts, layer["compute"] >= layer["transfer"])


def _whole(timing: dict[str, Any]) -> _Dot | None:
    work = timing["compute_bound"] * timing["peak_macs"]
    if not (work and timing["compulsory"] and timing["cycles"]):
        return None
    facts = (
        f"{timing['cycles']:,} cycles, {timing['ratio']:.2f}x of the bound, {timing['compulsory']:,} compulsory bytes"
    )
    return _Dot("the whole net", work, timing["compulsory"], timing["cycles"], 1.0, facts)


class _Axes:
    """From values to places in the picture."""

    def __init__(self, dots: list[_Dot], peak: float, bandwidth: float) -> None:
        ridge = peak / bandwidth
        x = [dot.intensity for dot in dots] + [ridge]
        y = [dot.speed for dot in dots] + [peak]
        self.x_low, self.x_high = min(x) / 1.6, max(x) * 1.6
        self.y_low, self.y_high = min(y) / 1.6, max(y) * 2.2

    def x(self, value: float) -> float:
        part = log10(value / self.x_low) / log10(self.x_high / self.x_low)
        return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        part = log10(value / self.y_low) / log10(self.y_high / self.y_low)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)


def _picture(dots: list[_Dot], net: _Dot | None, timing: dict[str, Any]) -> str:
    peak, bandwidth = timing["peak_macs"], timing["bus_bytes_per_cycle"]
    axes = _Axes([*dots, *([net] if net else [])], peak, bandwidth)
    *roof, bus = _roof(axes, peak, bandwidth)
    parts = [*_grid(axes), *roof]
    for dot in sorted(dots, key=lambda one: -one.share):
        radius = max(_SMALLEST, _LARGEST * sqrt(dot.share / max(one.share for one in dots) or 0.0))
        kind = "dot c" if dot.computes else "dot s"
        place = f'cx="{axes.x(dot.intensity):.1f}" cy="{axes.y(dot.speed):.1f}" r="{radius:.1f}"'
        parts.append(f'<circle class="{kind}" {place}>{title(_tooltip(dot))}</circle>')
    if net is not None:
        x, y = axes.x(net.intensity), axes.y(net.speed)
        points = f"{x - _NET:.1f},{y:.1f} {x:.1f},{y - _NET:.1f} {x + _NET:.1f},{y:.1f} {x:.1f},{y + _NET:.1f}"
        parts.append(f'<polygon class="net" points="{points}">{title(_tooltip(net))}</polygon>')
    parts.append(bus)  # over the dots, which lie where it does
    return f'<div class="scroll">{svg(_WIDTH, _HEIGHT, "".join(parts), "roofline plot", "roofline")}</div>'


def _tooltip(dot: _Dot) -> str:
    return f"{dot.name}: {dot.facts}; {dot.intensity:.3g} MACs per byte, {dot.speed:,.1f} MACs per cycle"


def _grid(axes: _Axes) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = []
    for value in decades(axes.x_low, axes.x_high):
        x = axes.x(value)
        parts += [line(x, _TOP, x, bottom, "grid"), words(x, bottom + 24, _tick(value), "middle")]
    for value in decades(axes.y_low, axes.y_high):
        y = axes.y(value)
        parts += [line(_LEFT, y, right, y, "grid"), words(_LEFT - 8, y + 4, _tick(value), "end")]
    middle = (_TOP + bottom) / 2
    parts.append(words((_LEFT + right) / 2, _HEIGHT - 12, "multiply-accumulates per byte", "middle"))
    parts.append(words(22, middle, "multiply-accumulates per cycle", "middle", -90))
    return parts


def _tick(value: float) -> str:
    return short(value) if value >= 1 else f"{value:g}"


def _roof(axes: _Axes, peak: float, bandwidth: float) -> list[str]:
    ridge = peak / bandwidth
    start = max(axes.x_low, axes.y_low / bandwidth)
    x, y = axes.x(ridge), axes.y(peak)
    slope = line(axes.x(start), axes.y(start * bandwidth), x, y, "roof")
    flat = line(x, y, _WIDTH - _RIGHT, y, "roof")
    name = words(_WIDTH - _RIGHT - 4, y - 20, f"arithmetic at full rate: {peak:,.0f} per cycle", "end", kind="strong")
    half = sqrt(start * ridge)
    rise = axes.y(start * bandwidth) - y
    turn = -round(degrees(atan2(rise, (x - axes.x(start)))))
    bus = words(
        axes.x(half),
        axes.y(half * bandwidth) - 8,
        f"bus: {bandwidth:.3g} bytes per cycle",
        "middle",
        turn,
        "strong over",
    )
    return [slope, flat, name, bus]
