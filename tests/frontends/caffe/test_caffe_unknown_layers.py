"""A net with several layers that are unknown or refused: all are named, and the cut that the message proposes works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from caffe_nets import header, layer, load, save

import bmcompiler
from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.frontends.caffe.layer import Layer, Results, local_converters

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
        (
            BRANCHES,
            ["2 layers 'left', 'last' (Pythn): layers of type", "layer 'right' (Python): runs"],
            ["a", "b", "z"],
        ),
        (IN_PLACE, ["layer 'writes_b' (Odd): layers of", "layer 'two' (Odder): layers of"], ["z", "a"]),
    ],
)
def test_all_unknown_layers_are_named_with_a_cut_that_works(
    text: str, listed: list[str], outputs: list[str], tmp_path: Path
) -> None:
    message = refused(tmp_path, text)
    first, *lines, _ = message.splitlines()
    assert re.search(r"net.prototxt: [23] layers are not supported:$", first)
    assert all(line.startswith(f"  {start}") for line, start in zip(lines, listed, strict=True))
    (cut,) = re.findall(r"pass outputs=(\[.*\]) to end the net before them, or register custom layers", message)
    assert json.loads(cut) == outputs
    assert list(load(tmp_path, text, outputs=json.loads(cut)).main.output_names) == outputs


def test_unknown_layers_at_the_input_leave_only_a_plugin(tmp_path: Path) -> None:
    text = header((1, 4)) + layer("Odd", top="a", name="p") + layer("Odd", bottom="a", name="q")
    message = refused(tmp_path, text)
    _, line, last = message.splitlines()
    assert line == "  2 layers 'p', 'q' (Odd): layers of type 'Odd' are not supported"
    assert last.startswith("Remedy: register custom layers through the entry point group")


def test_layers_that_no_output_needs_are_no_concern(tmp_path: Path) -> None:
    assert load(tmp_path, BRANCHES, outputs=["z"]).main.output_names == ["z"]


NORM = "batch_norm_param { use_global_stats: false }"
POOL = "pooling_param { pool: STOCHASTIC kernel_size: 2 }"
REFUSED = (
    header((1, 4, 8, 8))
    + layer("ReLU", name="first", top="a")
    + layer("ReLU", name="second", bottom="a", top="b")
    + layer("BatchNorm", NORM, name="norm1", bottom="b", top="b")
    + layer("ReLU", name="between", bottom="b", top="c")
    + layer("BatchNorm", NORM, name="norm2", bottom="c", top="c")
    + layer("Pooling", POOL, name="pool", bottom="c", top="d")
    + layer("BatchNorm", NORM, name="behind", bottom="d", top="e")
    + layer("Pythn", name="odd", bottom="e", top="f")
)
"""Refused are norms, pooling and the unknown layer; what reads the pooling's result is not judged."""


def test_refused_and_unknown_layers_are_listed_at_once_but_not_what_reads_them(tmp_path: Path) -> None:
    first, *lines, last = refused(tmp_path, REFUSED).splitlines()
    assert first.endswith("net.prototxt: 4 layers are not supported:")
    assert lines[:2] == [
        "  2 layers 'norm1', 'norm2' (BatchNorm): normalizes with the statistics of the batch. "
        "Remedy: set use_global_stats: true",
        "  layer 'pool' (Pooling): stochastic pooling; supported: MAX, AVE",
    ]
    assert len(lines) == 3 and lines[2].startswith("  layer 'odd' (Pythn): layers of type 'Pythn' are not supported")
    assert last.startswith('Remedy: pass outputs=["a"] to end the net before them')


def test_what_a_plugins_converter_refuses_is_listed_too(tmp_path: Path) -> None:
    def refuse(own: Layer) -> Results:
        raise own.unsupported("takes maps of one channel")

    with local_converters({"Odd": refuse}):
        message = refused(tmp_path, RELUS + layer("Odd", name="one", bottom="b", top="b") + layer("Pythn", bottom="b"))
    assert "  layer 'one' (Odd): takes maps of one channel\n  layer 'l' (Pythn): layers of type" in message


def test_a_broken_layer_ends_the_import_at_once(tmp_path: Path) -> None:
    text = header((1, 4)) + layer("InnerProduct", "inner_product_param { num_output: 3 }", name="empty", top="a")
    with pytest.raises(FileFormatError, match="'empty'"):
        load(tmp_path, text + layer("Odd", bottom="a", top="b", name="p") + layer("Odd", bottom="b", name="q"))
