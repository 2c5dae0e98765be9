"""What a network was trained on is noted in its model file, and who runs it is warned of values of another range."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fetched import third_party
from PIL import Image

import bmcompiler
from bmcompiler.bmodel import load
from bmcompiler.cli import opt, run, tool
from bmcompiler.cli.common import run as run_command
from bmcompiler.driver import load_network
from bmcompiler.errors import FileFormatError
from bmcompiler.files.mlir import load_module, save_module
from bmcompiler.inputs.ranges import by_training, decoded, drawn_pictures
from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session

ROOT = Path(__file__).resolve().parents[2]
LENET = (ROOT / "models/lenet/deploy.prototxt", ROOT / "models/lenet/lenet.caffemodel")
DIGITS = np.load(ROOT / "models/digits.npz")["calib"] / np.float32(255)


def _net(scale: float, layout: str = "nchw", focus: bool = False, constant: tuple[int, ...] | None = None) -> Module:
    """conv, and the norm that training on pictures of 0..`scale` would have left."""
    random, b = np.random.default_rng(1), Builder.new("net")
    x = b.input("image", TensorType((1, 3, 40, 56) if layout == "nchw" else (1, 40, 56, 3)))
    pictures = drawn_pictures(3)
    if layout == "nhwc":
        x = b.permute(x, order=(0, 3, 1, 2))
    if focus:
        parts = [b.slice(x, starts=[0, 0, k, 0], ends=[1, 3, 40, 56], steps=[1, 1, 2, 2]) for k in range(2)]
        x = b.concat(*parts, axis=1)
        pictures = np.concatenate([pictures[:, :, k::2, ::2] for k in range(2)], axis=1)
    if constant is not None:
        x = b.mul(x, b.weight(np.ones(constant, np.float32)))
    weight = random.standard_normal((8, x.shape[1], 1, 1)).astype(np.float32)
    made = np.einsum("oi,nihw->nohw", weight[:, :, 0, 0], scale * pictures)
    ones = np.ones(8, np.float32)
    mean, variance = (getattr(made, name)(axis=(0, 2, 3)).astype(np.float32) for name in ("mean", "var"))
    norm = b.batch_norm(b.conv(x, b.weight(weight)), *(b.weight(each) for each in (ones, ones, mean, variance)))
    return b.outputs([b.relu(norm)], ["out"])


@pytest.mark.parametrize("scale", [1, 255])
@pytest.mark.parametrize(
    "kind", [{}, {"layout": "nhwc"}, {"focus": True}, {"constant": (1, 3, 1, 1)}, {"constant": (1,)}], ids=str
)
def test_the_variance_of_the_first_norm_tells_what_training_had(scale: float, kind: dict[str, object]) -> None:
    (found,) = by_training(_net(scale, **kind)).values()
    assert 0.5 * scale < found < 2 * scale


def test_layers_that_are_of_one_size_tell_nothing() -> None:
    assert by_training(_net(1, constant=(1, 1, 40, 56))) == {}


@pytest.mark.parametrize("mode", ["constant", "edge"])
@pytest.mark.parametrize("constant", [False, True])
def test_small_inputs_that_are_padded_or_joined_are_compiled(mode: str, constant: bool) -> None:
    b = Builder.new("net")
    x = b.pad(b.input("image", TensorType((1, 3, 6, 7))), pads=[0, 0, 0, 0, 1, 1, 1, 1], mode=mode)
    if constant:
        x = b.concat(x, b.weight(np.ones((1, 1, 8, 9), np.float32)), axis=1)
    weight, ones = np.ones((4, x.shape[1], 3, 3), np.float32), np.ones(4, np.float32)
    norm = b.batch_norm(b.conv(x, b.weight(weight)), *(b.weight(ones) for _ in range(4)))
    found = by_training(b.outputs([norm], ["out"]))
    assert constant == (found == {})


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("mtcnn_onet", 1, 1), ("mtcnn_rnet", 1, 1), ("blazeface_front", 1, 1), ("ppocr_v2_cls", 0.5, 10)],
)
def test_trained_networks_for_small_numbers_are_told_from_pixels(name: str, least: float, most: float) -> None:
    shapes = [(1, 3, 48, 192)] if name.startswith("ppocr") else None
    (found,) = by_training(load_network(third_party(f"{name}.onnx"), shapes=shapes)).values()
    assert least <= found <= most


def test_a_detector_for_pixels_is_no_network_for_small_numbers() -> None:
    assert by_training(load_network(third_party("centerface.onnx"))) == {}
    ssd = load_network(third_party("res10_ssd_face.prototxt"), third_party("res10_ssd_face.caffemodel"))
    assert 100 < by_training(ssd)["data"] < 600


@pytest.mark.parametrize(
    ("target", "quantize"),
    [("bm1684", None), ("bm1684", "int8"), ("bm1684x", None), ("bm1684x", "int8"), ("dv700", None)],
)
def test_pixels_where_small_numbers_were_meant_are_noticed_when_running(
    target: str, quantize: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"data": DIGITS[:32]} if quantize == "int8" else {}
    file = tmp_path / "lenet.bmodel"
    bmcompiler.compile(*LENET, target=target, quantize=quantize, output=file, check="never", max_cycles=1, **data)
    for factor, words in ((1, ""), (255, "check mean and scale"), (0.3, "")):
        np.save(tmp_path / "digits.npy", DIGITS[:2] * np.float32(factor))
        capsys.readouterr()
        assert run_command(run.cli, "bmnet-run", [str(file), "--data", str(tmp_path / "digits.npy")]) == 0
        found = capsys.readouterr().err
        assert words in found and bool(words) == bool(found)
    pixels = Image.fromarray((DIGITS[0, 0] * 255).astype(np.uint8))
    pixels.save(tmp_path / "digit.png")
    assert run_command(run.cli, "bmnet-run", [str(file), "--images", str(tmp_path / "digit.png")]) == 0
    assert "check mean and scale" in capsys.readouterr().err
    assert run_command(tool.cli, "bmnet-tool", ["info", str(file)]) == 0
    said = "values: up to about 1 in data" in capsys.readouterr().out
    assert said == (load(file).stages()[0].inputs[0].dtype == "float32")  # scales of integers say it themselves


def test_samples_tell_more_than_training(tmp_path: Path) -> None:
    result = bmcompiler.compile(
        *LENET, target="bm1684", quantize="int8", data=7 * DIGITS[:32], check="never", max_cycles=1
    )
    session = Session(load_saved(result, tmp_path))
    assert decoded(session.ranges)["data"] == pytest.approx(7 * DIGITS[:32].max(), rel=0.2)
    assert session.far_off({"data": 255 * DIGITS[:4]}) != [] and session.far_off({"data": DIGITS[:4]}) == []


def test_saved_ir_says_what_samples_said(tmp_path: Path) -> None:
    saved, passed, broken = (tmp_path / f"{name}.mlir" for name in ("saved", "passed", "broken"))
    asked = {"target": "bm1684", "quantize": "int8", "check": "never"}
    bmcompiler.compile(
        *LENET, data=7 * DIGITS[:32], max_cycles=1, save_ir=saved, output=tmp_path / "net.bmodel", **asked
    )
    assert run_command(opt.cli, "bmnet-opt", [str(saved), "--pipeline", "dead-code", "-o", str(passed)]) == 0
    bmcompiler.compile(passed, output=tmp_path / "again.bmodel", **asked)
    first, again = (Session(load(tmp_path / f"{name}.bmodel")).ranges for name in ("net", "again"))
    assert first == again and decoded(first)["data"] > 5

    save_module(load_module(saved), broken)
    broken.write_text(saved.read_text().replace('"{', '"['))
    with pytest.raises(FileFormatError, match=r"broken\.mlir.* is malformed"):
        bmcompiler.compile(broken, **asked)


def load_saved(result: bmcompiler.Result, folder: Path) -> bmcompiler.bmodel.BModel:
    result.save(folder / "net.bmodel")
    return load(folder / "net.bmodel")


def test_a_note_that_is_none_is_refused() -> None:
    assert decoded("") == {}
    for text in ("[1]", '{"x": "y"}', "{", '{"x": null}'):
        with pytest.raises(FileFormatError, match="is malformed"):
            decoded(text)
