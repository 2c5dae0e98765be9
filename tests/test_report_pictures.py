"""The pictures of the HTML report: every layer, group and live range, on a page without other files."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.report import report_data, report_html
from bmcompiler.report.graph import graph_section
from bmcompiler.report.occupancy import occupancy_section
from bmcompiler.report.roofline import roofline_section
from bmcompiler.report.svg import decades, even_steps
from bmcompiler.report.tables import short
from bmcompiler.result import Result
from bmcompiler.target import GroupInfo, LiveRangeInfo, find_target

LAYERS = ("conv<1>", "act", "conv2", "sum")
GROUPS = [
    GroupInfo(0, ["conv<1>", "act"], (1, 1, 4, 1), 4096, [LiveRangeInfo("conv<1>", "weight", 0, 3, 0, 1024)]),
    GroupInfo(1, ["conv2"], (1, 1, 1, 1), 8192, [LiveRangeInfo("act", "value", 2, 5, 1024, 7168)]),
    GroupInfo(2, ["sum"], (1, 1, 1, 1), 64, [LiveRangeInfo("sum", "scratch", 0, 0, 0, 64)]),  # of another run
]


@cache
def result() -> Result:
    """A small net with a residual connection for a chip with a timing model."""
    b, rng = Builder.new("net & more"), np.random.default_rng(0)

    def weights() -> Any:
        return b.weight(rng.standard_normal((16, 16, 3, 3)).astype(np.float32), "w")

    x = b.input("x", TensorType((1, 16, 20, 20), "f32"))
    with b.at(LAYERS[0]):
        y = b.conv(x, weights(), pads=(1, 1, 1, 1))
    with b.at(LAYERS[1]):
        y = b.sigmoid(y)
    with b.at(LAYERS[2]):
        z = b.conv(y, weights(), pads=(1, 1, 1, 1))
    with b.at(LAYERS[3]):
        z = b.add(y, z)
    module = b.outputs([z], ["y"])
    compiled = find_target("bm1684").compile([module], 2)
    return Result(compiled.model, module, "bm1684", compiled.rows, compiled.totals, [], [], GROUPS)


class _Tags(HTMLParser):
    """Checks that tags close in order, and keeps all attributes that could name another file."""

    VOID = ("meta", "br")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def svgs(page: str) -> list[ET.Element]:
    return [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def titles(page: str) -> list[str]:
    return [title.text or "" for one in svgs(page) for title in one.iter("title")]


def test_the_page_is_well_formed_and_needs_no_other_file() -> None:
    page = report_html(result())
    assert not _Tags(page).attributes & {"src", "href", "srcset", "data"}
    assert "http" not in page and "@import" not in page and "url(" not in page
    assert page.count("<svg") == 4  # roofline, network, and local memory of two runs


def test_every_layer_has_a_dot_on_the_roofline_and_the_net_its_mark() -> None:
    data = report_data(result())
    section = roofline_section(data)
    found = titles(section)
    assert {text.split(":")[0] for text in found} == {*LAYERS, "the whole net"}
    (picture,) = svgs(section)
    circles = list(picture.iter("circle"))
    assert len(circles) == len(LAYERS) and len(list(picture.iter("polygon"))) == 1
    width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
    assert all(0 < float(one.get("cx", 0)) < width and 0 < float(one.get("cy", 0)) < height for one in circles)
    # No layer computes faster than the roof, whose level part is the last line.
    roof = [one for one in picture.iter("line") if one.get("class") == "roof"][-1]
    assert all(float(one.get("cy", 0)) >= float(roof.get("y1", 0)) - 0.1 for one in circles)


def test_ops_stand_below_what_they_read() -> None:
    data = report_data(result())
    nodes = data["graph"]
    assert [node["reads"] for node in nodes] == [[], [0], [1], [1, 2]]
    (picture,) = svgs(graph_section(data))
    boxes = [(float(one.get("x", 0)), float(one.get("y", 0))) for one in picture.iter("rect")]
    assert len(boxes) == len(set(boxes)) == len(LAYERS)
    assert all(boxes[source][1] < boxes[number][1] for number, node in enumerate(nodes) for source in node["reads"])
    assert len(list(picture.iter("path"))) == sum(len(node["reads"]) for node in nodes)
    assert [text.split(" (")[0] for text in titles(graph_section(data))] == [*LAYERS]


@given(st.data(), st.integers(1, 30))
def test_any_graph_has_a_place_for_each_op_inside_the_picture(draw: st.DataObject, count: int) -> None:
    reads = [sorted(draw.draw(st.sets(st.integers(0, one - 1), max_size=3))) if one else [] for one in range(count)]
    nodes = [{"layer": str(one), "kind": "add", "shape": [1], "reads": each} for one, each in enumerate(reads)]
    (picture,) = svgs(graph_section({"graph": nodes, "layers": [{"layer": "0", "where": "cpu"}]}))
    boxes = [tuple(float(one.get(name, 0)) for name in ("x", "y", "width", "height")) for one in picture.iter("rect")]
    assert len(set(boxes)) == count
    size = float(picture.get("width", 0)), float(picture.get("height", 0))
    assert all(x >= 0 and x + width <= size[0] and y + height <= size[1] for x, y, width, height in boxes)
    assert [one.get("class") for one in picture.iter("rect")] == ["op host", *["op"] * (count - 1)]


def test_groups_show_their_layers_and_slices() -> None:
    page = report_html(result())
    assert page.count('class="chip"') == sum(len(group.layers) for group in GROUPS)
    assert "4 slices (h 4)" in page and "conv&lt;1&gt;" in page
    assert [layer["group"] for layer in report_data(result())["layers"]] == [0, 0, 1, 2]


def test_every_live_range_is_a_rectangle_where_and_when_it_is() -> None:
    section = occupancy_section(report_data(result()))
    first, second = svgs(section)
    rectangles = [one for one in first.iter("rect") if "live" in one.get("class", "")]
    weight, value = ({name: float(one.get(name, 0)) for name in ("x", "y", "width", "height")} for one in rectangles)
    assert weight["height"] * 7 == pytest.approx(value["height"], rel=1e-2)
    assert weight["width"] == value["width"] and value["x"] == pytest.approx(weight["x"] + weight["width"] / 2, abs=0.1)
    assert value["y"] + value["height"] == pytest.approx(weight["y"], abs=0.1)  # above it
    assert [one.get("class") for one in rectangles] == ["live w", "live a"]
    assert titles(section)[0] == (
        "weight of conv<1>: 1,024 bytes per lane, addresses 0 to 1,023, steps 0 to 3, group 0"
    )
    assert len([one for one in second.iter("rect") if "live" in one.get("class", "")]) == 1


def test_the_chips_own_groups_can_be_drawn() -> None:
    compiled = find_target("bm1684").compile([result().module], 2)
    page = report_html(replace(result(), groups=compiled.groups))
    _Tags(page)
    assert compiled.groups and all(group.layers for group in compiled.groups)
    wanted = sum(len(group.live_ranges) for group in compiled.groups)
    assert page.count('class="live ') == wanted > 0


def test_without_groups_and_timing_the_page_has_the_network_alone() -> None:
    page = report_html(replace(result(), target="nochip", groups=None))
    assert page.count("<svg") == page.count('<svg class="graph"') == 1 and "Groups" not in page
    _Tags(page)


@given(st.floats(1e-3, 1e6), st.floats(1.01, 1e6))
def test_axes_have_marks_inside(low: float, factor: float) -> None:
    marks = decades(low, low * factor)
    assert all(low <= mark <= low * factor * 1.001 for mark in marks)
    assert marks == sorted(marks) and len(marks) <= 20
    steps = even_steps(low * factor, 8, base=2)
    assert 1 <= len(steps) <= 17 and steps[-1] <= low * factor


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (999, "999"), (1234567, "1.23 M"), (999_600, "1 M"), (5e12, "5e+03 G"), (1.5, "1.5")]
)
def test_short_numbers(value: float, text: str) -> None:
    assert short(value) == text
