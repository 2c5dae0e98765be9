"""The trace: valid Chrome trace events, one track per engine with layers and commands, and counters beside them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from programs import SIDE, TILE_BYTES, analysed, relu_tiles

from bmcompiler.bmodel.layers import LayerSpan
from bmcompiler.runtime.simulator.boxes import LOCAL
from bmcompiler.runtime.simulator.counters import bytes_in_use, rates
from bmcompiler.runtime.simulator.races import Accesses
from bmcompiler.runtime.simulator.timing import Schedule

Event = dict[str, Any]
SPANS = [LayerSpan("conv\n<1>", "relu", 0, 4), LayerSpan("β", "relu", 4, 2)]
LANE_BYTES = SIDE * SIDE
_FIELDS = {"M": {"name", "pid", "tid", "args"}, "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"}}
_FIELDS["C"] = {"name", "pid", "ts", "args"}
_NAMES = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}


def check_trace(text: str) -> list[Event]:
    """Hold a trace to the rules of the Chrome trace event format that viewers rely on; returns its events."""
    trace = json.loads(text)
    assert set(trace) <= {"displayTimeUnit", "traceEvents"} and trace["displayTimeUnit"] in ("ns", "ms")
    events: list[Event] = trace["traceEvents"]
    tracks: dict[int, list[Event]] = {}
    counters: dict[str, list[Event]] = {}
    for event in events:
        assert set(event) == {"ph"} | _FIELDS[event["ph"]], event
        assert isinstance(event["name"], str) and isinstance(event["pid"], int)
        if event["ph"] == "M":
            assert set(event["args"]) == {_NAMES[event["name"]]}
        elif event["ph"] == "X":
            assert isinstance(event["tid"], int) and event["ts"] >= 0 and event["dur"] >= 0
            tracks.setdefault(event["tid"], []).append(event)
        else:
            assert event["ts"] >= 0 and all(isinstance(value, int | float) for value in event["args"].values())
            counters.setdefault(event["name"], []).append(event)
    named = {event["tid"] for event in events if event["name"] == "thread_name"}
    assert set(tracks) <= named
    for slices in tracks.values():
        check_track(slices)
    for samples in counters.values():
        assert all(one["ts"] < other["ts"] for one, other in pairwise(samples))
    return events


def check_track(slices: list[Event]) -> None:
    """Slices of a kind are in order and do not overlap; those of commands lie within those of layers."""
    for category in ("layer", "command"):
        mine = [event for event in slices if event["cat"] == category]
        assert all(one["ts"] + one["dur"] <= other["ts"] + 1e-6 for one, other in pairwise(mine))
    layers = [event for event in slices if event["cat"] == "layer"]
    for event in slices:
        assert any(
            outer["ts"] - 1e-6 <= event["ts"] and event["ts"] + event["dur"] <= outer["ts"] + outer["dur"] + 1e-6
            for outer in layers
        )


def events(parallel: bool = True) -> list[Event]:
    return check_trace(analysed(relu_tiles(parallel=parallel), SPANS).trace())


def slices(found: list[Event], category: str) -> list[Event]:
    return [event for event in found if event.get("cat") == category]


def test_tracks_are_named() -> None:
    names = {event["tid"]: event["args"]["name"] for event in events() if event["name"] == "thread_name"}
    assert names == {1: "TPU", 2: "GDMA", 3: "CPU"}


def test_every_command_is_an_event_with_its_facts() -> None:
    commands = slices(events(), "command")
    assert [event["args"]["record"] for event in commands] == list(range(6))
    load = commands[0]
    assert (load["name"], load["tid"], load["ts"]) == ("gdma.load", 2, 0.0)
    assert load["args"]["read"] == TILE_BYTES and load["args"]["layer"] == "conv\n<1>"
    relu = next(event for event in commands if event["name"] == "tpu.max")
    assert relu["args"]["waits_for"] == 0 and relu["ts"] >= load["ts"] + load["dur"]


@pytest.mark.parametrize("parallel", [False, True])
def test_engines_show_the_layers_they_work_for(parallel: bool) -> None:
    layers = slices(events(parallel), "layer")
    assert {event["tid"] for event in layers} == {1, 2}
    assert [event["name"] for event in layers if event["tid"] == 1] == ["conv\n<1>", "β"]
    assert sum(event["args"]["commands"] for event in layers) == 6
    assert {event["args"]["kind"] for event in layers} == {"relu"}


def counter(found: list[Event], name: str) -> list[Event]:
    return [event for event in found if event["ph"] == "C" and event["name"].startswith(name)]


def test_local_memory_is_counted_while_something_waits_to_be_read() -> None:
    serial = [event["args"]["value"] for event in counter(events(parallel=False), "local memory")]
    assert max(serial) == LANE_BYTES and serial[-1] == 0
    both = [event["args"]["value"] for event in counter(events(), "local memory")]
    assert max(both) == 2 * LANE_BYTES and both[-1] == 0


def test_the_bus_counter_adds_up_to_the_bytes() -> None:
    found = events()
    samples = counter(found, "bus use")
    moved = sum(one["args"]["value"] * (other["ts"] - one["ts"]) for one, other in pairwise(samples))
    assert moved == pytest.approx(4 * TILE_BYTES, rel=1e-3)


def uses(rows: list[tuple[int, bool, int, int]]) -> Accesses:
    """(command, write, first byte, end)."""
    command, write, lo, hi = (np.array(column) for column in zip(*rows))
    zero, boxes = np.zeros(len(rows), np.int64), np.zeros((len(rows), 1), np.int64)
    return Accesses(command, zero + LOCAL, write.astype(bool), zero, zero + 1, lo, hi, lo, boxes, boxes, ("",))


def test_lives_end_with_the_last_read_before_the_next_write() -> None:
    times = Schedule(np.array([0, 10, 20, 30, 40]), np.array([10, 20, 30, 40, 50]))
    rows = [(0, True, 0, 64), (1, False, 0, 64), (2, True, 0, 64), (2, True, 64, 96), (3, False, 0, 96)]
    at, values = bytes_in_use(uses([*rows, (4, True, 0, 96)]), times)
    assert dict(zip(at.tolist(), values.tolist())) == {0: 64, 20: 96, 40: 0}


def test_what_was_there_before_counts_from_the_start() -> None:
    at, values = bytes_in_use(uses([(1, False, 0, 32)]), Schedule(np.array([0, 5]), np.array([5, 9])))
    assert (at.tolist(), values.tolist()) == ([0, 9], [32, 0])


def test_rates_are_averages() -> None:
    times = Schedule(np.array([0, 2000, 5000]), np.array([2000, 3000, 9000]))
    at, values = rates(np.array([4000, 0, 8000]), times, 1e6)
    assert at[-1] == 9000 and values[-1] == 0
    assert values[at < 1990].tolist() == pytest.approx([2.0] * int((at < 1990).sum()))
    assert float((values[:-1] * np.diff(at)).sum()) == pytest.approx(12000)


def test_commands_that_move_nothing_have_no_rates() -> None:
    edges, values = rates(np.zeros(3, np.int64), Schedule(np.array([0, 5, 9]), np.array([5, 9, 20])), 1e6)
    assert (edges.tolist(), values.tolist()) == ([0], [0.0])


def test_equal_programs_give_equal_text() -> None:
    first, second = (analysed(relu_tiles(parallel=True), SPANS).trace() for _ in range(2))
    assert first == second
