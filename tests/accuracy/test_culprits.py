"""bmnet-accuracy: layers that were spoilt on purpose are named, with the cause, on every chip that computes in int8."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bmcompiler.accuracy.pairs import paired
from bmcompiler.accuracy.study import Study, confirmed, study, suggested, with_table, write_suggestion
from bmcompiler.cli.accuracy import cli
from bmcompiler.cli.common import run
from bmcompiler.driver import load_network
from bmcompiler.ir import TensorType, copy_module
from bmcompiler.ops.builder import Builder
from bmcompiler.options import Options
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.table import CalibrationTable, save_table
from bmcompiler.target import find_target

MODELS = Path(__file__).resolve().parents[2] / "models"
NETS: dict[str, tuple[Path, ...]] = {
    "lenet": (MODELS / "lenet/deploy.prototxt", MODELS / "lenet/lenet.caffemodel"),
    "resnet8": (MODELS / "resnet8/resnet8_mnist.onnx",),
}
QUANTIZE = {"bm1684": "quantize{scheme=scale,mode=high}", "bm1880": "quantize{mode=low}"}
CUT, COARSE = 1 / 24, 60.0
"""What thresholds are multiplied by."""


def plain(chip: str) -> str:
    """The target's pipeline without what would mend a spoilt threshold."""
    text = find_target(chip).pipeline("int8", 2)
    for wanted, changed in (
        ("equalize,", ""),
        ("{method=auto}", ""),
        ("{scheme=scale}", ""),
        (",quantize", f",{QUANTIZE[chip]}"),
    ):
        text = text.replace(wanted, changed)
    return text


@cache
def samples() -> np.ndarray:
    return np.load(MODELS / "digits.npz")["calib"][:16].astype(np.float32) / 255


@cache
def thresholds(net: str, chip: str) -> CalibrationTable:
    module = load_network(*NETS[net])
    ctx = PassContext(target=find_target(chip), data={module.main.input_names[0]: samples()})
    pipeline = plain(chip)
    run_pipeline(module, pipeline[: pipeline.index(",quantize")], ctx)
    assert ctx.table is not None
    return ctx.table


def studied(net: str, chip: str, table: Path | None, **more: object) -> Study:
    name = load_network(*NETS[net]).main.input_names[0]
    options = Options(target=chip, quantize="int8", data={name: samples()}, table=table, pipeline=plain(chip))
    return study(*NETS[net], *([None] if len(NETS[net]) == 1 else []), options, samples=2, **more)  # type: ignore[arg-type]


@cache
def layers(net: str, chip: str) -> list[str]:
    """Layers that are computed in int8 with the threshold that the table gives them."""
    known = thresholds(net, chip).thresholds
    found = studied(net, chip, None, culprit_samples=0)
    quants = {layer.name: layer.compiled.type.quant for layer in found.pair.layers if layer.real.op is not None}
    own = {name: quant.scale * 128 / known[name] for name, quant in quants.items() if quant and name in known}
    return [name for name, ratio in own.items() if 0.8 < ratio < 1.25]


def spoilt(net: str, chip: str, number: int, factor: float, path: Path) -> tuple[str, Study]:
    """Writes a table with one wrong threshold: the layer it is for, which computes in int8 with it, and the study."""
    names = layers(net, chip)
    for culprit in (names[(3 * number + shift) % len(names)] for shift in range(len(names))):
        known = dict(thresholds(net, chip).thresholds)
        known[culprit] *= factor
        save_table(CalibrationTable.of(known, net), path)
        found = studied(net, chip, path)
        quant = found.numbers.layers[culprit].layer.compiled.type.quant
        if quant is not None and 0.8 < quant.scale * 128 / known[culprit] < 1.25:
            return culprit, found
    raise AssertionError("no layer takes the threshold")


CASES = [
    (net, chip, number, factor)
    for net, chip, count in (("resnet8", "bm1684", 4), ("resnet8", "bm1880", 4), ("lenet", "bm1880", 2))
    for number in range(count)
    for factor in (CUT, COARSE)
]


@pytest.mark.parametrize(("net", "chip", "number", "factor"), CASES)
def test_the_planted_culprit_is_found(net: str, chip: str, number: int, factor: float, tmp_path: Path) -> None:
    culprit, found = spoilt(net, chip, number, factor, tmp_path / "spoilt.table")
    first = found.numbers.layers[found.ranking[0]].layer
    planted = found.numbers.layers[culprit].layer
    assert first is planted or (planted.kind == "relu" and planted.real.op and first.real in planted.real.op.operands)
    assert first.compiled.type.quant == planted.compiled.type.quant, "a relu lends its threshold to what feeds it"
    assert found.causes[first.name].startswith("clipped" if factor < 1 else "unused range")


@pytest.fixture(scope="module")
def clipped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Study]:
    """A table that clips a layer, and what is found with it."""
    table = tmp_path_factory.mktemp("clipped") / "spoilt.table"
    return table, spoilt("resnet8", "bm1684", 1, CUT, table)[1]


def test_a_suggestion_brings_the_outputs_near_float(clipped: tuple[Path, Study], tmp_path: Path) -> None:
    (table, before), modes = clipped, tmp_path / "net.modes"
    layers = suggested(before)
    write_suggestion(before, layers, modes)
    source = load_network(*NETS["resnet8"]).main.input_names[0]
    options = Options(target="bm1684", quantize="int8", data={source: samples()}, table=table)
    after = study(NETS["resnet8"][0], None, with_table(options, modes), samples=2, culprit_samples=0)
    assert before.error > 0.1
    assert after.error < before.error / 4


@pytest.mark.parametrize(
    ("errors", "taken"),
    [((0.01, 0.0), 0), ((0.3, 0.01), 1), ((0.3, 0.1, 0.2), 1), ((9.0, 9.0, 9.0), None)],
    ids=["first", "more layers", "best", "none is nearer"],
)
def test_a_suggestion_that_brings_nothing_is_not_made(
    clipped: tuple[Path, Study], errors: tuple[float, ...], taken: int | None
) -> None:
    """Layers beside those in float are chosen anew, and what these bring may be lost there."""
    (_, before), asked = clipped, list[list[str]]()
    assert 0.1 < before.error < 9

    def trial(layers: list[str]) -> Any:
        asked.append(layers)
        return SimpleNamespace(error=errors[len(asked) - 1])

    found = confirmed(before, trial, 0.1)
    assert sorted(asked, key=len) == asked
    if taken is None:
        assert found is None
    else:
        assert found is not None and found[0] == asked[taken] and found[1].error == errors[taken]


def test_the_command_prints_ranks_and_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "x.npz", data=samples())
    page = tmp_path / "page.html"
    arguments = [*map(str, NETS["lenet"]), "--target", "bm1880", "--data", str(tmp_path / "x.npz"), "--html", str(page)]
    assert run(cli, "bmnet-accuracy", arguments) == 0
    said = capsys.readouterr().out
    assert "likely cause" in said
    assert "conv2" in said
    assert "Error along the net" in page.read_text()


def test_dumped_layers_are_what_both_networks_compute(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", data=samples())
    folder = tmp_path / "layers"
    arguments = [*map(str, NETS["lenet"]), "--target", "bm1880", "--data", str(tmp_path / "x.npz"), "--samples", "2"]
    assert run(cli, "bmnet-accuracy", [*arguments, "--dump-layers", str(folder)]) == 0
    files = sorted(each.name for each in folder.iterdir())
    assert files[0] == "000.data.npz"
    with np.load(folder / next(each for each in files if "conv1" in each)) as found:
        assert found["codes"].dtype == np.int8
        assert found["float"].shape == found["device"].shape == (2, 20, 24, 24)
        assert np.abs(found["float"] - found["device"]).max() < 0.1 * np.abs(found["float"]).max()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "dv700", "--suggest", "t.modes"], "takes no quantization table"),
        (["--target", "nothing"], "no target is called 'nothing'"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", data=samples())
    assert run(cli, "bmnet-accuracy", [*map(str, NETS["lenet"]), "--data", "x.npz", *arguments]) in (1, 2)
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["x.npz"]


def test_a_layer_may_be_as_deep_as_the_net() -> None:
    builder = Builder.new("deep")
    value = builder.input("data", TensorType((1, 4)))
    for _ in range(1500):  # none of which has a name that the source knows
        value = builder.add(value, value)
    module = builder.outputs([value], ["out"])
    pair = paired(module, copy_module(module), find_target("bm1684"))
    layer = pair.layers[-1]
    assert (layer.name, layer.reads) == ("out", pair.compiled.main.arguments)
    assert layer.ops == pair.compiled.main.ops[:-1] and layer.real_ops == module.main.ops[:-1]
