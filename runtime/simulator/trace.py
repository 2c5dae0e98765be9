"""Schedules as Chrome trace events (JSON), which ui.perfetto.dev and chrome://tracing show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmcompiler.numeric.arrays import Doubles, Ints
from bmcompiler.runtime.simulator.timing import CommandList, Schedule

_PROCESS = 1
_FIRST_TRACK = 1


@dataclass(frozen=True)
class TraceSlice:
    """Commands of one layer that an engine executes one after the other, from cycle `start` to `end`."""

    engine: int
    name: str
    start: int
    end: int
    args: dict[str, Any]


@dataclass(frozen=True)
class Counter:
    """A value over time: `values[i]` from cycle `at[i]` on, in ascending order."""

    name: str
    unit: str
    at: Ints
    values: Doubles


def layer_slices(
    layers: Sequence[tuple[str, str]], owner: Ints, commands: CommandList, times: Schedule
) -> list[TraceSlice]:
    """Runs of commands of one layer on one engine, by engine and time; `layers` are (name, kind) by number of owner."""
    found = []
    for engine in range(commands.engines):
        own = np.flatnonzero(commands.engine == engine)
        begins = np.flatnonzero(np.diff(owner[own], prepend=-1))
        for first, end in zip(begins.tolist(), [*begins[1:].tolist(), len(own)]):
            name, kind = layers[int(owner[own[first]])]
            start, stop = int(times.start[own[first]]), int(times.end[own[end - 1]])
            found.append(TraceSlice(engine, name, start, stop, {"kind": kind, "commands": end - first}))
    return found


def chrome_trace(
    title: str,
    engines: Sequence[str],
    clock_hz: float,
    *,
    commands: CommandList,
    times: Schedule,
    labels: Sequence[tuple[str, dict[str, Any]]],
    layers: Iterable[TraceSlice],
    counters: Iterable[Counter] = (),
) -> str:
    """One track per engine with slices of layers and, inside them, of commands; then one track per counter.

    Slices of layers are of the category "layer", those of commands "command". Times are microseconds at `clock_hz`.

    Args:
        engines: names by engine number.
        labels: (name, facts to show) of every command.
    Returns: JSON text, one event per line; equal programs give equal text.
    """
    scale = 1e6 / clock_hz
    events = [_metadata("process_name", 0, title)]
    events += [_metadata("thread_name", number + _FIRST_TRACK, name) for number, name in enumerate(engines)]
    # Perfetto shows tracks without commands, too, and sorts them by this.
    events += [_metadata("thread_sort_index", number + _FIRST_TRACK, number) for number in range(len(engines))]
    events += [_complete(one.name, "layer", one.engine, (one.start, one.end), scale, one.args) for one in layers]
    rows = zip(commands.engine.tolist(), times.start.tolist(), times.end.tolist(), labels)
    events += [
        _complete(name, "command", engine, (start, end), scale, args) for engine, start, end, (name, args) in rows
    ]
    for counter in counters:
        events += [_count(counter, at, value, scale) for at, value in zip(counter.at.tolist(), counter.values.tolist())]
    body = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    return f'{{"displayTimeUnit":"ns","traceEvents":[\n{body}\n]}}\n'


def _metadata(kind: str, track: int, value: str | int) -> dict[str, Any]:
    key = "sort_index" if kind == "thread_sort_index" else "name"
    return {"ph": "M", "name": kind, "pid": _PROCESS, "tid": track, "args": {key: value}}


def _time(cycle: int, scale: float) -> float:
    return round(cycle * scale, 6)


def _complete(
    name: str, category: str, engine: int, cycles: tuple[int, int], scale: float, args: dict[str, Any]
) -> dict[str, Any]:
    start, end = (_time(cycle, scale) for cycle in cycles)
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": _PROCESS,
        "tid": engine + _FIRST_TRACK,
        "ts": start,
        "dur": round(end - start, 6),
        "args": args,
    }


def _count(counter: Counter, cycle: int, value: float, scale: float) -> dict[str, Any]:
    return {
        "ph": "C",
        "name": f"{counter.name} ({counter.unit})",
        "pid": _PROCESS,
        "ts": _time(cycle, scale),
        "args": {"value": round(value, 3)},
    }
