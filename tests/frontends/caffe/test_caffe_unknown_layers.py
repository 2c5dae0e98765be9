"""A net with several unknown layers: all are named, and the cut that the message proposes works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from caffe_nets import header, layer, load, save

import bmcompiler
from bmcompiler.errors import UnsupportedError

RELUS = header((1, 4)) + layer("ReLU", name="first", top="a") + layer("ReLU", name="second", bottom="a", top="b")
BRANCHES = (
    RELUS
    + layer("Pythn", name="left", bottom="a", top="c")
    + layer("Python", 'python_param { module: "m" layer: "L" }', name="right", bottom="b", top="d")
    + layer("Eltwise", name="both", bottom="c d", top="e")
    + layer("Pythn", name="last", bottom="e", top="y")
    + layer("Sigmoid", name="side", bottom="b", top="z")
)
"""Two branches with an unknown layer in each, another behind them, and an output of its own."""
IN_PLACE = (
    RELUS
    + layer("Odd", name="writes_b", bottom="b", top="b")
    + layer("Odder", name="two", bottom="b", top="y")
    + layer("Sigmoid", name="side", bottom="a", top="z")
)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(UnsupportedError) as found:
        bmcompiler.load_network(save(folder, text)[0])
    return str(found.value)


@pytest.mark.parametrize(
    ("text", "listed", "outputs"),
    [
        (BRANCHES, r"Pythn in 'left', 'last'; Python in 'right'", ["a", "b", "z"]),
        (IN_PLACE, "Odd in 'writes_b'; Odder( .*)? in 'two'", ["z", "a"]),
    ],
)
def test_all_unknown_layers_are_named_with_a_cut_that_works(
    text: str, listed: str, outputs: list[str], tmp_path: Path
) -> None:
    message = refused(tmp_path, text)
    assert re.search(rf"net.prototxt: 2 layer types are not supported: {listed}\. Remedy: ", message)
    (cut,) = re.findall(r"pass outputs=(\[.*\]) to end the net before them, or register custom layers", message)
    assert json.loads(cut) == outputs
    assert list(load(tmp_path, text, outputs=json.loads(cut)).main.output_names) == outputs


def test_unknown_layers_at_the_input_leave_only_a_plugin(tmp_path: Path) -> None:
    text = header((1, 4)) + layer("Odd", top="a", name="p") + layer("Odd", bottom="a", name="q")
    message = refused(tmp_path, text)
    assert "this layer type is not supported: Odd" in message
    assert "in 'p', 'q'. Remedy: register custom layers through the entry point group" in message


def test_layers_that_no_output_needs_are_no_concern(tmp_path: Path) -> None:
    assert load(tmp_path, BRANCHES, outputs=["z"]).main.output_names == ["z"]
