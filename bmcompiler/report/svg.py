"""Pieces of SVG pictures; colours and fonts come from the classes of the page's style."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10


def svg(width: float, height: float, body: str, label: str, kind: str = "") -> str:
    """A picture of `width` by `height` units; `label` says what it shows to those who cannot see it."""
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return f'<svg class="{kind}" {size} role="img" aria-label="{escape(label, quote=True)}">{body}</svg>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def words(x: float, y: float, content: str, anchor: str = "start", turn: int = 0, kind: str = "") -> str:
    """A line of text; `turn` degrees clockwise around its place."""
    place = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{place}>{escape(content)}</text>'


def title(content: str) -> str:
    """What a reader sees who points at the element around it."""
    return f"<title>{escape(content)}</title>"


def decades(low: float, high: float) -> list[float]:
    """Powers of ten from `low` to `high`; with steps of 2 and 5 between them when there are few."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) <= 4 else (1,)
    return [found for power in powers for step in steps if low <= (found := step * 10.0**power) <= high * 1.0001]


def even_steps(high: float, most: int, base: int = 10) -> list[float]:
    """At most about `most` round numbers from 0 to `high`; with base 2 they are multiples of powers of two."""
    step = 1.0
    while high / step > most:
        step *= 2 if base == 2 else (2.5 if f"{step:e}"[0] == "2" else 2)
    return [step * index for index in range(int(high / step) + 1)]
