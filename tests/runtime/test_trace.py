"""The trace: valid Chrome trace events, one track per engine and one for the layers."""

from __future__ import annotations

import json
from typing import Any

from programs import TILE_BYTES, analysed, relu_tiles

from bmcompiler.bmodel.layers import LayerSpan

SPANS = [LayerSpan("conv\n<1>", "relu", 0, 4), LayerSpan("β", "relu", 4, 2)]


def events(parallel: bool = True) -> list[dict[str, Any]]:
    trace = json.loads(analysed(relu_tiles(parallel=parallel), SPANS).trace())
    assert trace["displayTimeUnit"] == "ns"
    found: list[dict[str, Any]] = trace["traceEvents"]
    return found


def test_tracks_are_named() -> None:
    names = {event["tid"]: event["args"]["name"] for event in events() if event["name"] == "thread_name"}
    assert names == {0: "layers", 1: "TPU", 2: "GDMA", 3: "CPU"}


def test_every_command_is_an_event_with_its_facts() -> None:
    commands = [event for event in events() if event["ph"] == "X" and event["tid"] > 0]
    assert [event["args"]["record"] for event in commands] == list(range(6))
    load = commands[0]
    assert (load["name"], load["tid"], load["ts"]) == ("gdma.load", 2, 0.0)
    assert load["args"]["read"] == TILE_BYTES and load["args"]["layer"] == "conv\n<1>"
    relu = next(event for event in commands if event["name"] == "tpu.max")
    assert relu["args"]["waits_for"] == 0 and relu["ts"] >= load["ts"] + load["dur"]


def test_slices_of_a_track_follow_each_other() -> None:
    for track in range(3):
        end = 0.0
        for event in events():
            if event["ph"] == "X" and event["tid"] == track:
                assert event["ts"] >= end - 1e-6 and event["dur"] >= 0
                end = event["ts"] + event["dur"]


def test_layers_have_slices() -> None:
    layers = [event for event in events(parallel=False) if event["ph"] == "X" and event["tid"] == 0]
    assert [event["name"] for event in layers] == ["conv\n<1>", "β"]
    assert layers[0]["args"] == {"kind": "relu", "commands": 4}


def test_equal_programs_give_equal_text() -> None:
    first, second = (analysed(relu_tiles(parallel=True), SPANS).trace() for _ in range(2))
    assert first == second
