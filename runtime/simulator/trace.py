"""Schedules as Chrome trace events (JSON), which ui.perfetto.dev and chrome://tracing show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bmcompiler.runtime.simulator.timing import CommandList, Schedule

_PROCESS = 1
_LAYER_TRACK = 0


@dataclass(frozen=True)
class Slice:
    """Something with a name on the layer track, from cycle `start` to `end`."""

    name: str
    start: int
    end: int
    args: dict[str, Any]


def chrome_trace(
    title: str,
    engines: Sequence[str],
    clock_hz: float,
    *,
    commands: CommandList,
    times: Schedule,
    labels: Sequence[tuple[str, dict[str, Any]]],
    layers: Sequence[Slice],
) -> str:
    """One track for the layers and one per engine; times are microseconds at `clock_hz`.

    Args:
        engines: names by engine number.
        labels: (name, facts to show) of every command.
        layers: in time order; where two overlap, the later one is shown from the end of the earlier.
    Returns: JSON text, one event per line; equal programs give equal text.
    """
    scale = 1e6 / clock_hz
    events = [_metadata("process_name", _LAYER_TRACK, title), _metadata("thread_name", _LAYER_TRACK, "layers")]
    events += [_metadata("thread_name", number + 1, name) for number, name in enumerate(engines)]
    shown = 0
    for layer in layers:
        start = max(shown, layer.start)
        shown = max(start, layer.end)
        events.append(_complete(layer.name, _LAYER_TRACK, (start * scale, shown * scale), layer.args))
    rows = zip(commands.engine.tolist(), times.start.tolist(), times.end.tolist(), labels)
    events += [
        _complete(name, engine + 1, (start * scale, end * scale), args) for engine, start, end, (name, args) in rows
    ]
    body = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    return f'{{"displayTimeUnit":"ns","traceEvents":[\n{body}\n]}}\n'


def _metadata(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": _PROCESS, "tid": track, "args": {"name": name}}


def _complete(name: str, track: int, time: tuple[float, float], args: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "pid": _PROCESS,
        "tid": track,
        "ts": round(time[0], 6),
        "dur": round(time[1] - time[0], 6),
        "args": args,
    }
