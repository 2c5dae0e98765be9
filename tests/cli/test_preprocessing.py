"""A model says how pictures become its input: commands and sessions follow it, and warn of what cannot be meant."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bmcompiler
from bmcompiler import bmodel
from bmcompiler.bmodel.layers import PICTURES
from bmcompiler.cli import calibrate, compile, evaluate, run, tool
from bmcompiler.cli.common import run as run_command
from bmcompiler.errors import BMError, FileFormatError, RuntimeUseError
from bmcompiler.files.mlir import save_module
from bmcompiler.inputs import ImageOptions, open_inputs, placed
from bmcompiler.inputs.preprocessing import decoded
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.options import Preprocessing
from bmcompiler.runtime import Session

RANDOM = np.random.default_rng(2)
KINDS = [("bm1880", "int8"), ("bm1684", "f32"), ("bm1684x", "f16"), ("dv700", "f16")]
SAID = ["--letterbox", "--std", "255", "--channel-order", "bgr"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """photos/0.png ... of all kinds, net.mlir, and TARGET.bmodel compiled with `SAID`."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "photos").mkdir()
    for number, mode in enumerate(["RGB", "L", "RGBA", "P"] * 4):
        pixels = RANDOM.integers(0, 256, (5 + 7 * (number % 5), 40 - 9 * (number % 4), 3), np.uint8)
        Image.fromarray(pixels).convert(mode).save(folder / "photos" / f"{number:02}.png")
    save_net(folder / "net.mlir")
    for target, precision in KINDS:
        assert compiled(folder, target, precision, f"{target}.bmodel", *SAID) == 0
    return folder


def save_net(path: Path) -> None:
    b = Builder.new("net")
    weight = b.weight(RANDOM.normal(size=(4, 3, 3, 3)).astype(np.float32))
    out = b.conv(b.input("image", TensorType((2, 3, 16, 24))), weight, pads=(1, 1, 1, 1))
    save_module(b.outputs([out], ["out"]), path)


def compiled(folder: Path, target: str, precision: str, output: str, *options: str) -> int:
    samples = ["--images", str(folder / "photos")] if precision == "int8" else []
    arguments = [str(folder / "net.mlir"), "--target", target, "--quantize", precision, "-o", str(folder / output)]
    return run_command(compile.cli, "bmnet-compile", [*arguments, *samples, *options, "--quiet"])


def ran(model: Path, *options: str) -> int:
    return run_command(run.cli, "bmnet-run", [str(model), *options])


@pytest.mark.parametrize("target", [target for target, _ in KINDS])
def test_a_model_takes_images_as_it_was_told_when_compiled(
    target: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, photos = folder / f"{target}.bmodel", folder / "photos"
    assert ran(model, "--images", str(photos), "-o", str(folder / "a.npz")) == 0
    said = capsys.readouterr()
    assert said.err == "" and "bgr, NCHW, letterboxed to 16x24 on 114 (center)" in said.out
    session = Session(model)
    options = ImageOptions(photos, letterbox=114, std=255, channel_order="bgr")
    wanted = session.run(open_inputs(options).bind(session.inputs))["out"]
    np.testing.assert_array_equal(np.load(folder / "a.npz")["out"], wanted)
    np.testing.assert_array_equal(session.run(session.images(photos))["out"], wanted)
    box = [[3, 4, 20, 12]]
    there = placed(options, (16, 24), (30, 90)).to_image(box)
    np.testing.assert_array_equal(session.to_image(box, (30, 90)), there)
    assert run_command(tool.cli, "bmnet-tool", ["info", str(model)]) == 0
    assert "pictures: bgr, NCHW, letterboxed to 16x24 on 114 (center)" in capsys.readouterr().out
    assert run_command(tool.cli, "bmnet-tool", ["info", "--json", str(model)]) == 0
    facts = json.loads(json.loads(capsys.readouterr().out)["programs"][0]["pictures"])
    assert facts["letterbox"] in (114, [114]) and facts["layout"] == "nchw"


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        (["--std", "255"], ""),
        (["--scale", "0.004"], "--scale is 0.004, the model was made for none"),
        (["--std", "1"], "reaches 250, the model was made for values up to 1: check mean and scale"),
        (["--std", "65025"], "the model was made for values up to 1: check mean and scale"),
        (["--channel-order", "rgb"], "--channel-order is rgb, the model was made for bgr"),
        (["--resize", "to-input"], "--resize is none, the model was made for none"),
        (["--keep-aspect"], "--keep-aspect is True, the model was made for False"),
        (["--letterbox", "0"], "--letterbox is 0, the model was made for 114"),
    ],
)
def test_other_options_than_the_models_are_followed_with_a_warning(
    options: list[str], warned: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(folder / "bm1684.bmodel", "--images", str(folder / "photos"), *options) == 0
    found = capsys.readouterr()
    if options[0] == "--resize":
        assert "stretched" not in found.err and "resized to 16x24" in found.out
        return
    assert warned in found.err and (found.err == "") == (warned == "")


@pytest.mark.parametrize("target", ["bm1880", "bm1684x"])
def test_values_of_another_range_are_noticed_without_images_too(
    target: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = RANDOM.uniform(0, 1, (3, 3, 16, 24)).astype(np.float32)
    for factor, words in ((1, ""), (255, "check mean and scale"), (1 / 255, "check mean and scale")):
        np.save(folder / "values.npy", values * np.float32(factor))
        assert ran(folder / f"{target}.bmodel", "--data", str(folder / "values.npy")) == 0
        assert words in (found := capsys.readouterr().err) and bool(words) == bool(found)
    arguments = [str(folder / f"{target}.bmodel"), "--images", str(folder / "photos"), "--std", "1"]
    labels = ["--labels", str(folder / "labels.npy"), "--metric", "top1"]
    np.save(folder / "labels.npy", np.zeros(16, np.int64))
    assert run_command(evaluate.cli, "bmnet-eval", [*arguments, *labels]) == 0
    assert "the model was made for values up to" in capsys.readouterr().err


def test_a_model_that_says_nothing_takes_images_as_before(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compiled(folder, "bm1684", "f32", "silent.bmodel") == 0
    session = Session(folder / "silent.bmodel")
    assert session.preprocessing is None and session.far_off({"image": np.full((2, 3, 16, 24), 1e9)}) == []
    for call in (lambda: session.images(folder / "photos"), lambda: session.to_image([0, 0], (3, 3))):
        with pytest.raises(RuntimeUseError, match="does not say how pictures"):
            call()
    capsys.readouterr()
    assert ran(folder / "silent.bmodel", "--images", str(folder / "photos")) == 0
    assert "resized to 16x24" in capsys.readouterr().out


def test_notes_survive_other_tools(folder: Path) -> None:
    """Saved again, cut, beside names of layers, and where no layer is named."""
    for target, _ in KINDS:
        model = bmodel.load(folder / f"{target}.bmodel")
        said = model.stages()[0].pictures
        bmodel.save(model.select(0), folder / "again.bmodel")
        again = bmodel.load(folder / "again.bmodel")
        assert again.stages()[0].pictures == said and decoded(said) is not None
        again.note(PICTURES, '{"letterbox": 0}')
        bmodel.save(again, folder / "again.bmodel")
        assert bmodel.load(folder / "again.bmodel").stages()[0].pictures == '{"letterbox": 0}'
    nameless = bmodel.load(folder / "bm1684.bmodel")
    nameless.nets[0].stages[0].layers = b""
    nameless.note(PICTURES, "{}")
    bmodel.save(nameless, folder / "again.bmodel")
    assert bmodel.load(folder / "again.bmodel").stages()[0].pictures == "{}"


@pytest.mark.parametrize("text", ["[1]", "{", '{"speed": 1}', '{"mean": "x"}', '{"letterbox": 999}', "[" * 9999])
def test_a_damaged_note_is_a_sentence(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FileFormatError, match="what the model says of pictures is malformed"):
        decoded(text)
    model = bmodel.load(folder / "bm1880.bmodel")
    model.note(PICTURES, text)
    bmodel.save(model, folder / "damaged.bmodel")
    assert run_command(tool.cli, "bmnet-tool", ["info", str(folder / "damaged.bmodel")]) == 0
    assert ran(folder / "damaged.bmodel", "--images", str(folder / "photos")) == 1
    assert "is malformed" in capsys.readouterr().err


def test_python_says_it_with_preprocessing(folder: Path) -> None:
    said = Preprocessing(letterbox=(1, 2, 3), pad="bottom-right", mean=(10, 20.5, 30), scale=0.01)
    result = bmcompiler.compile(folder / "net.mlir", target="bm1684", preprocess=said)
    session = Session(result.model)
    assert session.preprocessing == Preprocessing(
        letterbox=(1, 2, 3), pad="bottom-right", mean=(10, 20.5, 30), scale=0.01, layout="nchw"
    )
    with pytest.raises(BMError, match="mean has 2 numbers"):
        bmcompiler.compile(folder / "net.mlir", target="bm1684", preprocess=Preprocessing(mean=(1, 2)))
    with pytest.raises(BMError, match="is no image of 1 or 3 channels in nhwc"):
        bmcompiler.compile(folder / "net.mlir", target="bm1684", preprocess=Preprocessing(layout="nhwc"))


def test_other_commands_still_need_images(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", "x.npz", "-o", str(folder / "t.table")]
    assert run_command(calibrate.cli, "bmnet-calibrate", [str(folder / "net.mlir"), *data, "--std", "255"]) == 2
    assert "--std is about images, but there is no --images" in capsys.readouterr().err
    assert ran(folder / "bm1880.bmodel", "--data", "x.npz", "--letterbox") == 2
    assert "--letterbox is about images, but there is no --images" in capsys.readouterr().err
