"""Local memory over time: one rectangle for the live range of a tensor, from its first to its last step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bmcompiler.report.svg import even_steps, line, svg, title, words
from bmcompiler.report.tables import legend

_LEFT, _RIGHT, _TOP, _BOTTOM = 96.0, 24.0, 34.0, 64.0
_HEIGHT = 420.0
_WIDTH, _STEP_MIN, _STEP_MAX = 1380.0, 2.0, 14.0
_LABEL_ROOM = 52.0  # between numbers of groups
_THIN = 2.0  # less is drawn without a border, which would hide it
_KINDS = (("weight", "w", "weights"), ("value", "a", "activations"), ("scratch", "x", "scratch"))
_CLASS = {kind: style for kind, style, _ in _KINDS}

Group = dict[str, Any]


def occupancy_section(data: dict[str, Any]) -> str:
    """A picture per run of device layers, address over steps; nothing for chips that keep nothing."""
    runs = [run for run in _runs(data["groups"] or ()) if any(group["live_ranges"] for group in run)]
    if not runs:
        return ""
    high = max(life["address"] + life["lane_bytes"] for run in runs for group in run for life in group["live_ranges"])
    marks = legend("", [(style, name) for _, style, name in _KINDS])
    pictures = "".join(_picture(run, high) for run in runs)
    text = (
        "What lies where in every lane of local memory, from the step that keeps a place for it to its last use; a "
        "step computes a layer, or a slice of one. Numbers above are those of groups. Layers that tile by themselves "
        "leave their step empty."
    )
    return f'<h2>Local memory over time</h2><p class="small">{text}</p>{marks}{pictures}'


def _runs(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Groups whose steps are counted together: with every run of device layers the steps begin anew."""
    run: list[Group] = []
    latest = -1
    for group in groups:
        first = min((life["first_step"] for life in group["live_ranges"]), default=latest)
        if first < latest and run:
            yield run
            run, latest = [], -1
        run.append(group)
        latest = max([latest, *(life["first_step"] for life in group["live_ranges"])])
    if run:
        yield run


def _picture(run: list[Group], high: int) -> str:
    live_ranges = [(group, life) for group in run for life in group["live_ranges"]]
    steps = 1 + max(life["last_step"] for _, life in live_ranges)
    step = min(_STEP_MAX, max(_STEP_MIN, (_WIDTH - _LEFT - _RIGHT) / steps))
    width = max(_LEFT + _RIGHT + step * steps, 300.0)
    bottom = _HEIGHT - _BOTTOM
    scale = (bottom - _TOP) / high
    parts = list(_bands(run, step, width, bottom))
    for address in even_steps(high, 8, base=2):
        y = bottom - address * scale
        parts += [line(_LEFT, y, width - _RIGHT, y, "grid"), words(_LEFT - 6, y + 4, f"{address / 1024:g}", "end")]
    for group, life in live_ranges:
        x, wide = (
            _LEFT + life["first_step"] * step,
            (life["last_step"] - life["first_step"] + 1) * step,
        )
        top, tall = (
            bottom - (life["address"] + life["lane_bytes"]) * scale,
            max(0.6, life["lane_bytes"] * scale),
        )
        place = f'x="{x:.2f}" y="{top:.2f}" width="{wide:.2f}" height="{tall:.2f}"'
        kind = f"live {_CLASS.get(life['kind'], 'x')}" + (" thin" if tall < _THIN else "")
        parts.append(f'<rect class="{kind}" {place}>{title(_tooltip(group, life))}</rect>')
    for number in even_steps(steps, int(width / 90)):
        parts.append(words(_LEFT + number * step, bottom + 22, f"{number:g}", "middle"))
    parts.append(words((_LEFT + width - _RIGHT) / 2, bottom + 50, "step", "middle"))
    parts.append(words(22, (_TOP + bottom) / 2, "address in a lane, KiB", "middle", -90))
    return f'<div class="scroll">{svg(width, _HEIGHT, "".join(parts), "local memory over time", "occupancy")}</div>'


def _bands(run: list[Group], step: float, width: float, bottom: float) -> Iterator[str]:
    """A stripe behind every other group, and the numbers of groups where there is room."""
    starts = [
        (group["number"], min(life["first_step"] for life in group["live_ranges"]))
        for group in run
        if group["live_ranges"]
    ]
    edges = [_LEFT + first * step for _, first in starts]
    shown = -_LABEL_ROOM
    for index, ((number, _), left) in enumerate(zip(starts, edges)):
        right = edges[index + 1] if index + 1 < len(edges) else width - _RIGHT
        if index % 2:
            yield f'<rect class="band" x="{left:.2f}" y="{_TOP}" width="{right - left:.2f}" height="{bottom - _TOP}"/>'
        if left - shown >= _LABEL_ROOM:
            shown = left
            yield words(left, _TOP - 8, str(number))


def _tooltip(group: Group, life: dict[str, Any]) -> str:
    first, last = life["first_step"], life["last_step"]
    when = f"step {first}" if first == last else f"steps {first} to {last}"
    end = life["address"] + life["lane_bytes"]
    what = f"{life['kind']} of {life['label']}: {life['lane_bytes']:,} bytes per lane"
    return f"{what}, addresses {life['address']:,} to {end - 1:,}, {when}, group {group['number']}"
