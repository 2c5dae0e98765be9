"""The older BM1880 container (JSON header): read into the same model, never trusted."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from bmcompiler.bmodel import load, save
from bmcompiler.bmodel.bm1880 import Bm1880Model
from bmcompiler.errors import FileFormatError

HEADER: dict[str, Any] = {
    "name": "old",
    "version": "0.1.1",
    "libraries": [],
    "weight": ["0", "16"],
    "backends": [
        {
            "node_num": "1",
            "target": "1880",
            "varieties": [
                {
                    "cmdbuf": ["16", "8"],
                    "neuron_size": "30",
                    "output_offset": "24",
                    "output_size": "6",
                    "shape": ["1", "3", "2", "4"],
                    "threshold": "255.124573",
                    "sub_outputs": [
                        {"name": "box", "shape": ["1", "4", "1", "1"], "threshold": "16.644228"},
                        {"name": "prob", "shape": ["1", "2", "1", "1"], "threshold": "206.836761"},
                    ],
                }
            ],
        }
    ],
}
VARIETY = ("backends", 0, "varieties", 0)


def write(path: Path, header: object, data: bytes = bytes(range(24))) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    gap = b"\x55\xaa\xaa\x55" + len(data).to_bytes(4, "little") + bytes(4)
    path.write_bytes(len(text).to_bytes(4, "little") + text + gap + data)
    return path


def changed(*steps: object, value: object) -> dict[str, Any]:
    header: Any = copy.deepcopy(HEADER)
    place = header
    for step in steps[:-1]:
        place = place[step]
    place[steps[-1]] = value
    return dict(header)


def test_it_reads_as_the_same_model(tmp_path: Path) -> None:
    model = load(write(tmp_path / "m", HEADER))
    assert isinstance(model, Bm1880Model)
    assert model.read_as == "bm1880-json"
    (stage,) = model.stages()
    assert [(t.name, t.shape, t.offset) for t in stage.outputs] == [
        ("box", (1, 4, 1, 1), 24),
        ("prob", (1, 2, 1, 1), 28),
    ]
    assert stage.inputs[0].threshold == pytest.approx(255.124573)
    assert model.commands[0].cmdbuf == bytes(range(16, 24))
    assert bytes(model.weights[0]) == bytes(range(16))


def test_a_variety_may_have_weights_of_its_own(tmp_path: Path) -> None:
    """Ignored, commands beyond the first compute with wrong weights."""
    header = changed(*VARIETY, value=HEADER["backends"][0]["varieties"][0])
    own = {**HEADER["backends"][0]["varieties"][0], "weight": ["4", "8"], "shape": ["1", "3", "4", "2"]}
    header["backends"][0]["varieties"].append(own)
    save(load(write(tmp_path / "m", header)), tmp_path / "new")
    for model in (load(tmp_path / "m"), load(tmp_path / "new")):
        assert isinstance(model, Bm1880Model)
        found = [bytes(model.weights[command.weight_index]) for command in model.commands]
        assert found == [bytes(range(16)), bytes(range(4, 12))]


def test_saving_writes_the_current_container(tmp_path: Path) -> None:
    old = load(write(tmp_path / "m", HEADER))
    save(old, tmp_path / "new")
    new = load(tmp_path / "new")
    assert isinstance(old, Bm1880Model) and isinstance(new, Bm1880Model)
    assert (new.read_as, new.version) == ("bm1880", "2.1")
    assert new.commands == old.commands


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (changed("weight", value=["0", "25"]), "weight should be a range inside the 24 bytes"),
        (changed("weight", value=["-1", "4"]), r"weight\[0\] should be a whole number"),
        (changed("weight", value=["9" * 5000, "4"]), "whole number"),
        (changed("weight", value="0"), "weight should be a list of 2"),
        (changed(*VARIETY, "cmdbuf", value=["20", "8"]), "cmdbuf should be a range"),
        (changed(*VARIETY, "neuron_size", value="29"), "output 1 lies outside"),
        (changed(*VARIETY, "neuron_size", value=1e30), "whole number"),
        (changed(*VARIETY, "output_size", value="5"), "sum of its sub_outputs"),
        (changed(*VARIETY, "shape", value=["1"] * 9), "at most 8"),
        (changed(*VARIETY, "shape", value=["0", "3", "2", "4"]), "impossible shape"),
        (changed(*VARIETY, "shape", value=[True, "3"]), "whole number"),
        (changed(*VARIETY, "threshold", value="nan"), "threshold should be a number"),
        (changed(*VARIETY, "threshold", value="1e99"), "threshold should be a number"),
        (changed(*VARIETY, "sub_outputs", 0, "name", value=7), "name should be a string"),
        (changed("backends", 0, "target", value="1682"), "no program for chip 1880"),
        (changed("backends", value={}), "backends should be a list"),
        ({}, "an object with 'backends'"),
        (b"{" * 40, "cannot be read"),
        (b'{"a":' * 100_000, "cannot be read"),
        (b'{"\xff": 1}', "cannot be read"),
    ],
)
def test_bad_headers_say_which_value_is_wrong(header: object, words: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m", header)
    with pytest.raises(FileFormatError, match=words) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_truncation_and_a_lost_mark(tmp_path: Path) -> None:
    data = write(tmp_path / "m", HEADER).read_bytes()
    for content in (data[:20], data[:-1], data.replace(b"\x55\xaa\xaa\x55", b"\x55\xaa\xaa\x00")):
        (tmp_path / "cut").write_bytes(content)
        with pytest.raises(FileFormatError):
            load(tmp_path / "cut")


def test_the_vendors_file_reads(vendor_samples: Path) -> None:
    (stage,) = load(vendor_samples / "det1_1_3_12_12.bmodel").stages()
    assert (stage.net, stage.inputs[0].shape, [t.name for t in stage.outputs]) == (
        "det1",
        (1, 3, 12, 12),
        ["conv4-2", "conv4-1"],
    )
