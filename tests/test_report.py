"""Reports of compilations: JSON with every fact of the summary, and one page of HTML that needs nothing else."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from fetched import third_party
from report_forms import assert_forms_agree

import bmcompiler
from bmcompiler.backends.bm1880.cycles import TimingProfile
from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.bmodel.layers import LayerSpan, encode_layers
from bmcompiler.errors import UsageError
from bmcompiler.ir import Module, TensorType
from bmcompiler.ir.keys import PLACE_CPU
from bmcompiler.ops.builder import Builder
from bmcompiler.report import report_csv, report_data, report_html, report_json, write_report
from bmcompiler.report.page import page
from bmcompiler.report.summary import layer_tables, summary
from bmcompiler.result import Result
from bmcompiler.target import GroupInfo, LayerRow

ROWS = [
    LayerRow(
        "conv1", "conv", "bm1880", (1, 8, 4, 4), loaded=700, stored=128, weights=200, commands=5, tiles=2, macs=9216
    ),
    LayerRow("conv1", "relu", "bm1880", (1, 8, 4, 4), loaded=128, stored=128, commands=3, tiles=1),
    LayerRow("<prob>", "softmax", "cpu", (1, 8), reason="'softmax' has no int8 form & more"),
]


def result() -> Result:
    from bmcompiler.backends.bm1880.bmkernel import (
        CTRL_NEURON,
        FMT_I8,
        bmk1880_acquire_cmdbuf,
        bmk1880_gdma_load,
        bmk1880_register,
        bmk1880_tl_prealloc_align,
        shape_t4,
    )

    ctx = bmk1880_register()
    for _ in range(8):
        bmk1880_gdma_load(ctx, bmk1880_tl_prealloc_align(ctx, 0, shape_t4(1, 8, 4, 4), FMT_I8), 0, CTRL_NEURON)
    layers = encode_layers([LayerSpan("conv1", "conv", 0, 5), LayerSpan("conv1", "relu", 5, 3)])
    x, y = TensorInfo("x", (1, 8, 4, 4)), TensorInfo("y", (1, 8), offset=128)
    command = Command([x], [y], bmk1880_acquire_cmdbuf(ctx), 256, layers=layers)
    model = Bm1880Model("net</title>", [command], [])
    totals = {"neuron memory": 256, "command bytes": len(command.cmdbuf)}
    notes = ["a < b"]
    return Result(model, Module([]), "bm1880", list(ROWS), totals, notes, [("read", 0.25), ("generate code", 0.5)])


def test_json_holds_every_row_total_note_and_stage() -> None:
    data = json.loads(report_json(result()))
    assert (data["net"], data["target"], data["notes"]) == ("net</title>", "bm1880", ["a < b"])
    assert [layer["layer"] for layer in data["layers"]] == ["conv1", "conv1", "<prob>"]
    assert data["layers"][2]["reason"] == ROWS[2].reason and data["layers"][0]["shape"] == [1, 8, 4, 4]
    totals = data["totals"]
    assert (totals["macs"], totals["loaded"], totals["stored"], totals["neuron_memory"]) == (9216, 828, 256, 256)
    assert data["compile_seconds"] == [{"stage": "read", "seconds": 0.25}, {"stage": "generate code", "seconds": 0.5}]
    assert data["programs"][0]["inputs"] == [{"name": "x", "shape": [1, 8, 4, 4], "dtype": "int8", "threshold": 0.0}]


def test_cycles_of_the_timing_model_go_to_their_rows() -> None:
    data = report_data(result())
    cycles = [layer["cycles"] for layer in data["layers"]]
    assert sum(cycles) == data["timing"]["cycles"] and cycles[2] == 0
    assert cycles[0] * 3 == cycles[1] * 5


def test_rows_of_one_name_and_kind_share_its_cycles_by_commands() -> None:
    one = result()
    one.rows = [replace(ROWS[0], kind="conv"), replace(ROWS[0], kind="conv")]
    one.model.commands[0].layers = encode_layers(
        [LayerSpan("conv1", "conv", *span) for span in ((0, 1), (1, 3), (4, 4))]
    )
    data = report_data(one)
    assert [layer["cycles"] * 2 for layer in data["layers"]] == [data["timing"]["cycles"]] * 2


def test_figures_of_rows_add_up_to_those_of_the_program() -> None:
    data = report_data(result())
    timing = data["timing"]
    assert timing["weights"] + timing["features"] + timing["spill"] == 8 * 128
    for name in ("cycles", "features", "spill", "stalled", "compulsory"):
        whole = timing["engines"][0]["stalled"] if name == "stalled" else timing[name]
        assert sum(layer[name] for layer in data["layers"]) == whole, name
    assert sum(layer["compute_bound"] for layer in data["layers"]) == pytest.approx(timing["compute_bound"])
    assert timing["bound"] == max(timing["compute_bound"], timing["traffic_bound"]) <= timing["cycles"]


def test_a_layer_without_commands_of_its_own_has_its_cycles() -> None:
    one = result()
    one.rows[1] = replace(one.rows[1], commands=0)
    rows = report_data(one)["layers"]
    assert rows[1]["cycles"] * 5 == rows[0]["cycles"] * 3 > 0


def test_commands_of_no_layer_stand_apart() -> None:
    one = result()
    one.rows = one.rows[:1]
    data = report_data(one)
    assert [(row["layer"], row["kind"]) for row in data["layers"]] == [("conv1", "conv")]
    assert [(row["layer"], row["kind"]) for row in data["other_commands"]] == [("conv1", "relu")]
    assert sum(row["cycles"] for row in data["layers"] + data["other_commands"]) == data["timing"]["cycles"]
    assert "Commands of no layer: conv1 (relu): " in page(data)


def test_a_profile_changes_the_estimate() -> None:
    slow = report_data(result(), TimingProfile(ddr_rate=1e9))["timing"]
    assert slow["cycles"] > report_data(result())["timing"]["cycles"]
    assert slow["bus_bytes_per_cycle"] == 1.0


def test_a_program_that_cannot_be_estimated_is_reported_all_the_same() -> None:
    one = result()
    one.model.commands[0].cmdbuf = b"hello world"
    data = report_data(one)
    assert data["timing"] is None and "no estimate of the time" in data["notes"][-1]
    assert "conv1" in report_html(one)


def test_the_summary_says_time_bound_bytes_memory_and_groups() -> None:
    one = result()
    one.totals["neuron lower bound"] = 200
    one.groups = [GroupInfo(0, ["conv1", "b"], (1, 1, 4, 1), 64, []), GroupInfo(1, ["c"], (1, 1, 1, 1), 64, [])]
    text = summary(one, width=120)
    for part in (
        r"memory +256 B neuron \(1\.28x of the lower bound\)",
        r"bytes +1\.02 kB moved, 8\.00x of the least: 0 B weights, 1\.02 kB features, 0 B spill",
        r"time +0\.9 us at 1000 MHz \(estimate\), [\d.]+x of the roofline bound\n",
        r"conv1 +conv +0\.\d +\d+\.\d% +[\d.]+",
    ):
        assert re.search(part, text), part
    assert "2 groups, 1 of several layers, 1 of these in slices" in layer_tables(one)
    assert "at 500 MHz" in summary(one, TimingProfile(clock_hz=5e8))
    one.model.commands[0].cmdbuf = b"hello world"
    assert re.search("time +not estimated: ", summary(one))


@pytest.mark.parametrize(
    ("chip", "precision"), [("bm1880", "int8"), ("bm1684", "f32"), ("bm1684x", "f32"), ("dv700", "f16")]
)
def test_all_forms_count_the_same_layers_and_say_what_the_host_takes(chip: str, precision: str) -> None:
    root = Path(__file__).parents[1] / "models"
    samples = np.load(root / "digits.npz")["calib"][:16].astype(np.float32) / 255
    lenet = root / "lenet"
    one = bmcompiler.compile(
        lenet / "deploy.prototxt",
        lenet / "lenet.caffemodel",
        target=chip,
        quantize=precision,
        data={"data": samples} if precision == "int8" else None,
    )
    assert_forms_agree(one)
    on_host = [row.kind for row in one.rows if row.where == "cpu"]
    text, page_text = summary(one, width=120), report_html(one)
    assert ("plus 1 host call, not counted" in text) is bool(on_host)
    assert ("their time is not counted" in page_text) is bool(on_host)
    assert ("prob (softmax): " in text) is bool(on_host)


def test_the_summary_says_what_crosses_the_bus_for_the_host() -> None:
    """Two layers of the host read one map of the chip, and the chip reads what one of them makes of it."""
    b = Builder.new("net")
    x = b.relu(b.input("x", TensorType((1, 4, 8, 8), "f32")))
    _, places = b.top_k(b.reshape(x, shape=(1, 256)), k=200, axis=1)
    shrunk = b.erf(x)
    module = b.outputs([places, b.relu(shrunk)], ["places", "y"])
    for op in module.main.ops:
        if op.short_name in ("top_k", "erf"):
            op.attributes[PLACE_CPU] = "asked"
    text = summary(bmcompiler.compile_module(module, target="bm1684", quantize="f32"), width=120)
    assert "1,024 bytes go to the host in a run, 1,024 come back" in text
    assert "go to the host" not in summary(bmcompiler.compile_module(small(), target="bm1684", quantize="f32"))


def small() -> Module:
    b = Builder.new("net")
    return b.outputs([b.relu(b.input("x", TensorType((1, 4, 8, 8), "f32")))], ["y"])


def test_the_summary_fits_a_small_terminal() -> None:
    one = result()
    long = "a name as long as exporters write them/" * 4
    one.rows = [
        replace(ROWS[2], layer=f"{long}{i}", kind=f"op{i}", reason=f"no kernel for '{'abcdefghi'[i % 9]}'")
        for i in range(99)
    ]
    one.notes = [f"warning: layer '{long}{i}' uses {i} of its codes" for i in range(50)] + ["note " * 50] * 20
    lines = summary(one, width=80).splitlines()
    assert len(lines) <= 24
    assert [line for line in lines if len(line) > 80] == [line for line in lines if long in line]
    assert "11 layers: no kernel for 'a'" in lines[2]
    assert "77 layers for 7 more reasons (--layers)" in lines[4]


def test_csv_has_a_line_per_layer() -> None:
    one = result()
    one.rows[0] = replace(one.rows[0], layer='=1+1,"x"')
    rows = list(csv.DictReader(io.StringIO(report_csv(one))))
    assert [row["kind"] for row in rows[:3]] == ["conv", "relu", "softmax"]
    assert rows[0]["layer"] == '\'=1+1,"x"' and rows[0]["shape"] == "1x8x4x4" and rows[0]["macs"] == "9216"
    data = report_data(one)
    assert sum(int(row["cycles"]) for row in rows) == sum(layer["cycles"] for layer in data["layers"]) > 0


def test_a_target_without_timing_model_has_no_cycles() -> None:
    other = replace(result(), target="nochip")
    data = report_data(other)
    assert data["timing"] is None and "cycles" not in data["layers"][0]
    assert "Engines" not in report_html(other)


class Page(HTMLParser):
    """Tags with their attributes, and the text of all cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self._open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "td":
            self.cells.append("")
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag != "td"

    def handle_data(self, data: str) -> None:
        if self._open:
            self.cells[-1] += data


def test_page_shows_layers_reasons_and_needs_no_other_file() -> None:
    text = report_html(result())
    page = Page(text)
    for cell in ("conv1", "<prob>", "9,216", ROWS[2].reason, "1×8×4×4", "cpu"):
        assert cell in page.cells, cell
    assert "<prob>" not in text and "net</title>" not in text.replace("&lt;/title&gt;", "")
    assert not any({"src", "href"} & attributes.keys() for _, attributes in page.tags)
    assert "http" not in text and "@import" not in text
    assert "a &lt; b" in text


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    for name in ("r.json", "r.html", "r.csv"):
        write_report(result(), tmp_path / name)
    assert json.loads((tmp_path / "r.json").read_text())["report"] == 4
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    with pytest.raises(UsageError, match=r"\.html, \.json or \.csv"):
        write_report(result(), tmp_path / "r.txt")
    with pytest.raises(OSError, match="folder does not exist"):
        write_report(result(), tmp_path / "none" / "r.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "r.html", "r.json"]


def test_the_page_says_what_commands_compute_beyond_the_layers() -> None:
    data = report_data(result())
    data["timing"]["computed_macs"] = 9216 * 5 // 4
    assert "9,216, 25.0% more in commands" in page(data)
    data["timing"]["computed_macs"] = 9216
    assert "more in commands" not in page(data)


@pytest.mark.slow
@pytest.mark.parametrize(("chip", "precision"), [("bm1684", "f32"), ("dv700", "f16")])
def test_the_summary_of_a_detector_is_a_screen(chip: str, precision: str) -> None:
    one = bmcompiler.compile(third_party("yolox_chars.onnx"), target=chip, quantize=precision)
    lines = summary(one, width=80).splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert_forms_agree(one)
