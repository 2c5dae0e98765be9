"""A compilation's report and `bmnet-run --timing` say the same of one file, and no layer is below its bound."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fetched import third_party
from level_nets import MODELS, MODES, SHAPES, files_of

import bmcompiler
from bmcompiler.analysis.profile import Timing, analysis_of
from bmcompiler.bmodel import load, save
from bmcompiler.report import report_data

sys.path.insert(0, str(MODELS))
from transformers import transformer

QUICK = "lenet"
LARGE = ("resnet8", "light_resnet50", "mobilenetv2_160", "light_shufflenet", "vit_block")


CASES = [
    pytest.param(name, chip, precision, marks=() if name == QUICK else pytest.mark.sweep)
    for name, (chip, precision) in product((QUICK, *LARGE), (*MODES, ("dv700", "f16")))
]


def _compiled(name: str, chip: str, precision: str, folder: Path) -> Any:
    if name == "vit_block":
        files: tuple[Path, Path | None] = transformer(name, folder), None
    else:
        files = (third_party(f"{name}.onnx"), None) if name.startswith("light") else files_of(name, folder)
    given: dict[str, Any] = {"shapes": [[1, *SHAPES[name]]]} if name in SHAPES else {}
    if precision == "int8":
        net = bmcompiler.load_network(*files, **given).main
        noise = np.random.default_rng(0).standard_normal(net.arguments[0].shape, np.float32)
        given["data"] = {net.input_names[0]: noise}
    return bmcompiler.compile(*files, target=chip, quantize=precision, check="never", **given)


@pytest.mark.parametrize(("name", "chip", "precision"), CASES)
def test_report_and_run_agree(name: str, chip: str, precision: str, tmp_path: Path) -> None:
    result = _compiled(name, chip, precision, tmp_path)
    data = report_data(result)
    save(result.model, tmp_path / "net.bmodel")
    analysis = analysis_of(chip, load(tmp_path / "net.bmodel"))
    assert analysis is not None
    timing = analysis.timing()
    assert data["totals"]["macs"] == data["timing"]["macs"] == timing.macs > 0
    assert data["timing"]["ratio"] == timing.ratio
    _assert_layers_agree(data, timing)
    assert timing.cycles >= timing.bound
    for layer in timing.layers:
        taken = max(layer.cycles, layer.compute, layer.transfer)
        assert taken + layer.commands > (layer.bound or layer.traffic_alone), layer  # models count whole cycles


def _assert_layers_agree(data: dict[str, Any], timing: Timing) -> None:
    rows = [row for row in (*data["layers"], *data["other_commands"]) if row["where"] != "cpu"]
    macs, cycles, ratios = Counter[Any](), Counter[Any](), {}
    for row in rows:
        key = row["layer"], row["kind"]
        macs[key] += row["macs"]
        cycles[key] += row["cycles"]
        ratios[key] = row["ratio"]
    for layer in timing.layers:
        key = layer.name, layer.kind
        if key in ratios:
            assert (macs[key], cycles[key], ratios[key]) == (layer.macs, layer.cycles, layer.ratio), key
        else:  # what the host computes has one name, and only its copies take time here
            assert layer.macs == 0
