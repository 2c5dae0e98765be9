"""Reports say by what, in what and from what a program was made, what binds a layer, and cut no word of a picture."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.accuracy.page import accuracy_page
from bmcompiler.accuracy.study import study
from bmcompiler.analysis.timing_profile import profile_for
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.options import ImageOptions, Options
from bmcompiler.passes.quantization.choice.tasks import watched
from bmcompiler.report import report_csv, report_data, report_html, report_json, tables
from bmcompiler.report.groups import group_section
from bmcompiler.report.occupancy import occupancy_section
from bmcompiler.report.roofline import roofline_section
from bmcompiler.result import Result
from bmcompiler.told import said
from bmcompiler.version import version

ROOT = Path(__file__).resolve().parents[1]
LENET = (ROOT / "models/lenet/deploy.prototxt", ROOT / "models/lenet/lenet.caffemodel")
LARGEST_FONT = 24.0
"""Of pictures on narrow screens (frame.html)."""
WIDTHS = {"%": 0.95} | dict.fromkeys("0123456789", 0.64)
"""Of characters for their font size; 0.54 for others, on average."""

sys.path.insert(0, str(ROOT / "tools"))


@cache
def samples() -> Any:
    return np.load(ROOT / "models" / "digits.npz")["calib"][:16].astype(np.float32) / 255


@cache
def compiled(chip: str = "bm1684x", precision: str = "int8") -> Result:
    data = samples() if precision == "int8" else None
    return bmcompiler.compile(*LENET, target=chip, quantize=precision, data=data, method="max", check="never")


def test_every_form_says_precision_version_and_options() -> None:
    one = compiled()
    made = f"bmcompiler {version()}"
    data = json.loads(report_json(one))
    assert (data["precision"], data["compiler"]) == ("int8", made)
    files = {"model": str(LENET[0]), "weights": str(LENET[1])}
    assert data["options"] == files | {"quantize": "int8", "method": "max", "check": "never"}  # arrays have no words
    for row in csv.DictReader(io.StringIO(report_csv(one))):
        assert (row["net"], row["target"], row["precision"], row["compiler"]) == ("LeNet", "bm1684x", "int8", made)
        assert row["options"].endswith("quantize int8; method max; check never")
    page = report_html(one)
    assert "<small>bm1684x int8</small>" in page
    assert f"{made} · " in page and "· quantize int8 · method max · check never</p>" in page


def test_options_are_said_as_commands_take_them() -> None:
    images = ImageOptions(path=Path("photos"), mean=(1, 2.5, 3), letterbox=114, keep_aspect=False)
    given = Options(
        images=images,
        shapes=[[(1, 3, 8, 8)], [(2, 3, 8, 8)]],
        outputs=["a", "b"],
        verify_each=True,
        max_error=2.5,
        timing_profile=profile_for("bm1684", ["clock_hz=5e8"]),
        log=lambda _: None,
    )
    assert said(given) == {
        "images": "photos",
        "mean": "1,2.5,3",
        "letterbox": "114",
        "max_error": "2.5",
        "verify_each": "yes",
        "timing_profile": "clock_hz=500000000",
        "shapes": "[[[1,3,8,8]],[[2,3,8,8]]]",
        "outputs": "a,b",
    }
    assert said(Options()) == {}


@pytest.mark.parametrize(("compute", "transfer", "kind"), [(997, 90, "c"), (90, 997, "s"), (50, 50, "c")])
def test_colours_say_what_keeps_its_engine_busy(compute: int, transfer: int, kind: str) -> None:
    data = report_data(compiled(precision="f32"))
    layer = next(row for row in data["layers"] if row["macs"])
    data["layers"] = [layer | {"compute": compute, "transfer": transfer, "cycles": 1000}]
    section = roofline_section(data)
    assert f'<circle class="dot {kind}"' in section
    assert f"busy: arithmetic {compute:,}, transfers {transfer:,}" in section


@pytest.mark.parametrize("chip", ["bm1880", "bm1684", "bm1684x", "dv700"])
def test_no_tooltip_contradicts_itself(chip: str) -> None:
    section = roofline_section(report_data(compiled(chip, {"bm1880": "int8", "dv700": "f16"}.get(chip, "f32"))))
    told = re.findall(r"<title>(.*?)</title>", section)
    assert told and not [text for text in told if re.search(r"(^|[^,.\d])0 MACs", text)]
    for text in (each for each in told if not each.startswith("the whole net")):
        found = re.search(r"([\d,]+) MACs(?: at full rate)?, ([\d,]+) bytes; ([\d.e+-]+) MACs per byte", text)
        assert found, text
        work, nbytes = (int(number.replace(",", "")) for number in found.groups()[:2])
        assert work / nbytes == pytest.approx(float(found[3]), rel=0.02, abs=2e-3), text


def cut_words(picture: str) -> list[str]:
    """Words that reach out of their picture at the largest font, or over the words beside them."""
    root = ET.fromstring(picture)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    cut = []
    for text in root.iter("text"):
        content, x, y = text.text or "", float(text.get("x", 0)), float(text.get("y", 0))
        long = sum(WIDTHS.get(each, 0.54) for each in content) * LARGEST_FONT
        left = x - {"end": long, "middle": long / 2}.get(text.get("text-anchor", ""), 0.0)
        box = (left, y - 0.75 * LARGEST_FONT, left + long, y + 0.22 * LARGEST_FONT)
        if "rotate(-90" in text.get("transform", ""):
            box = (x - 0.75 * LARGEST_FONT, y - long / 2, x + 0.22 * LARGEST_FONT, y + long / 2)
        if min(box[:2]) < -1 or box[2] > width + 1 or box[3] > height + 1:
            cut.append(content)
    return cut


def test_no_word_of_a_picture_is_cut() -> None:
    data = report_data(compiled(precision="f32"))
    sections = [roofline_section(data), occupancy_section(data)]
    request = Options(target="bm1684x", quantize="int8", data={"data": samples()})
    sections.append(accuracy_page(study(*LENET, request, samples=2), "LeNet", request))
    assert "accuracy on bm1684x int8" in sections[-1] and f"bmcompiler {version()} · quantize int8" in sections[-1]
    pictures = [each for text in sections for each in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    assert len(pictures) > 3
    assert not [word for picture in pictures for word in cut_words(picture)]


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_layers_at_the_borders_are_called_by_their_tensors(precision: str) -> None:
    b = Builder.new("net")
    picked = b.input("index", TensorType((1, 4), "i64"))
    flags = b.input("flag", TensorType((1, 4), "bool"))
    x = b.input("x", TensorType((1, 4), "f32"))
    with b.at("pick"):
        y = b.where(flags, b.matmul(x, b.weight(np.eye(4, dtype=np.float32), "w")), b.cast(picked, dtype="f32"))
    result = bmcompiler.compile_module(b.outputs([y], ["y"]), target="bm1684x", quantize=precision, check="never")
    assert all(row.layer != row.kind for row in result.rows)
    assert {(row.layer, row.kind) for row in result.rows} >= {("flag", "cast"), ("x", "cast")}


def test_what_outputs_are_made_of_is_called_in_words() -> None:
    b = Builder.new("net")
    x, other = (b.input(name, TensorType((1, 8), "f32")) for name in ("x", "other"))
    picked = b.arg(b.softmax(b.relu(x), axis=1), method="max", axis=1)
    both = b.concat(b.softmax(b.relu(x), axis=1), b.softmax(b.relu(other), axis=1), axis=1)
    _, where = b.top_k(both, k=2, axis=1)
    names = list(watched(b.outputs([picked, b.softmax(b.relu(other), axis=1), where], ["best", "odds", "top"]).main))
    assert names[:2] == ["best before softmax", "odds before softmax"]
    assert not [name for name in names if "<" in name]


def test_a_name_in_words_stays_unique() -> None:
    one = compiled()
    assert not [note for note in one.notes if "<" in note]
    assert replace(one, notes=[]).precision == "int8"


def test_tables_have_no_column_that_says_nothing_and_break_where_joined_names_do() -> None:
    page = report_html(compiled(precision="f32"))
    headings = re.findall(r"<th [^>]*>(.*?)</th>", page[page.index('<table class="layers"') :])
    assert "layer" in headings and "runs on" not in headings  # all on one chip, as the tiles say
    cells = [tables.text("x/y+z/"), tables.text(""), tables.number(0)]
    made = tables.table([("a", "t", ""), ("b", "t", ""), ("c", "n", "")], [cells])
    assert re.findall(r"<th [^>]*>(.*?)</th>", made) == ["a"]
    assert ">x/<wbr>y+<wbr>z/</td>" in made


def test_a_chip_of_a_group_says_the_first_layer_and_how_many_more() -> None:
    data = report_data(compiled(precision="f32"))
    group = {**data["groups"][0], "layers": ["a+b+c"]}
    section = group_section({"groups": [group], "layers": []})
    assert ">a +2</i>" in section and 'title="a+b+c: 0 cycles"' in section
