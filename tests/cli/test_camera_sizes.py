"""--fuse-preprocess with --camera: models take whole pictures of a camera, and cut and scale them on the chip."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from test_fuse_preprocess import CHIPS, compiled, conv_net, meaning, nhwc_net

import bmcompiler
from bmcompiler.cli import compile, run, tool
from bmcompiler.cli.common import run as run_command
from bmcompiler.errors import UsageError
from bmcompiler.files.mlir import save_module
from bmcompiler.inputs.camera import fuse
from bmcompiler.inputs.placing import drawn, linear
from bmcompiler.ir import Module
from bmcompiler.options import Preprocessing
from bmcompiler.runtime import Session

CAMERA = (44, 60)
DETECTOR = {"letterbox": 114, "std": 255}
COVERING = {"mean": (123.7, 116.3, 103.5), "std": (58.4, 57.1, 57.4), "keep_aspect": True}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the camera takes them: smooth, for scaling says nothing of noise."""
    folder = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(5)
    for number in range(16):
        small = Image.fromarray(random.integers(0, 256, (6, 9, 3), np.uint8))
        small.resize(CAMERA[::-1], Image.Resampling.BICUBIC).save(folder / f"{number:02}.png")
    return folder


@pytest.mark.parametrize(("target", "precision", "near"), CHIPS)
@pytest.mark.parametrize(
    ("net", "given", "pixels"),
    [(conv_net, DETECTOR, "bgr-nhwc"), (conv_net, COVERING, "rgb-nchw"), (nhwc_net, DETECTOR, "rgb-nhwc")],
)
def test_the_chip_scales_as_the_host_did(
    net: Callable[[], Module],
    given: dict[str, object],
    pixels: str,
    target: str,
    precision: str,
    near: float,
    pictures: Path,
) -> None:
    """But for the host's rounding of scaled pixels to bytes, and what Pillow sees beside the middle."""
    host = Session(compiled(net(), given, pictures, target, precision).model)
    asked = {**given, "camera": CAMERA}
    result = compiled(net(), asked, pictures, target, precision, fuse_preprocess=pixels, check="always")
    session = Session(result.model)
    (info,) = session.inputs
    assert info.dtype == "uint8" and set(CAMERA) < set(info.shape)
    assert " on the host CPU" not in str(result).replace("none on the host CPU", ""), "nothing of it is the host's"
    found, wanted = session.run(session.images(pictures))["out"], host.run(host.images(pictures))["out"]
    assert np.abs(found - wanted).max() <= (near + 0.02) * np.abs(wanted).max()
    box = [[2, 3, 20, 14]]
    np.testing.assert_allclose(session.to_image(box, CAMERA), host.to_image(box, CAMERA), atol=0.5)


@pytest.mark.parametrize("target", ["bm1880", "bm1684", "bm1684x"])
def test_nearest_pixels_are_taken_on_the_chip(target: str, pictures: Path) -> None:
    asked = {**DETECTOR, "camera": CAMERA, "camera_nearest": True}
    precision = "int8" if target == "bm1880" else "f32"
    result = compiled(conv_net(), asked, pictures, target, precision, fuse_preprocess="bgr-nhwc", check="always")
    assert " on the host CPU" not in str(result).replace("none on the host CPU", "")


def _frame(size: tuple[int, int] = CAMERA) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (2, *size, 3), np.uint8)


def _meant(given: dict[str, object], taken: np.ndarray) -> np.ndarray:
    """What the input of the network itself is: a net of nothing but a copy."""
    module = conv_net()
    (reader,) = [op for op in module.main.ops if op.short_name == "conv"]
    module.main.ops[-1].set_operand(0, reader.operands[0])
    fuse(module, Preprocessing(**given), "rgb-nhwc")
    return meaning(module, taken).transpose(0, 2, 3, 1)


@pytest.mark.parametrize("nearest", [False, True])
def test_a_letterbox_of_the_model_is_that_of_the_host(nearest: bool) -> None:
    size = (45, 63)  # no result lies in the middle between two pixels
    frame = _frame(size)
    found = _meant({"letterbox": 7, "camera": size, "camera_nearest": nearest}, frame)
    for one, pixels in zip(found, frame, strict=True):
        inner = linear(pixels, (16, 22))
        if nearest:
            inner = np.asarray(Image.fromarray(pixels).resize((22, 16), Image.Resampling.NEAREST))
        wanted = np.full((16, 24, 3), 7, np.uint8)
        wanted[:, 1:23] = inner
        assert np.abs(one - wanted).max() <= (0 if nearest else 1)


@pytest.mark.parametrize("given", [{}, {"keep_aspect": True}, {"resize": (22, 30)}, {"resize": (22, 33)}])
def test_other_pictures_are_scaled_over_all_pixels_as_pillow_does(given: dict[str, object]) -> None:
    """22x30 of 44x60 is half of each axis, so that the middle begins at a whole pixel, and 22x33 at none.

    Pillow sees what is beside the middle, too, for the pixels at its edges.
    """
    frame = _frame()
    found = _meant({**given, "camera": CAMERA}, frame)
    for one, pixels in zip(found, frame, strict=True):
        wanted = drawn(Image.fromarray(pixels), Preprocessing(**given), (16, 24), 3)
        if given.get("resize") != (22, 33) and not given.get("keep_aspect"):
            edge = 1 if given else 0
            assert np.abs(one - wanted)[edge : 16 - edge, edge : 24 - edge].max() <= 1
        else:  # at most half a pixel of the camera beside it
            assert np.corrcoef(one.ravel(), wanted.ravel())[0, 1] > 0.8


def test_pictures_of_other_sizes_fill_the_camera_and_boxes_find_back(tmp_path: Path) -> None:
    """A bright square in a photo twice as large as the camera's, and taller: found where it is."""
    photo = np.zeros((120, 120, 3), np.uint8)
    photo[60:76, 40:56] = 255
    Image.fromarray(photo).save(tmp_path / "photo.png")
    asked = {"letterbox": 0, "camera": CAMERA}
    session = Session(compiled(conv_net(), asked, tmp_path, "bm1684x", "f32", fuse_preprocess="rgb-nhwc").model)
    taken = np.asarray(session.images(tmp_path)["image"])
    assert taken.shape == (1, *CAMERA, 3)
    seen = _meant(asked, np.concatenate([taken] * 2).astype(np.uint8))[0, ..., 0]
    rows, columns = np.nonzero(seen > 100)
    box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    np.testing.assert_allclose(session.to_image(box, (120, 120)), [40, 60, 56, 76], atol=4)


def test_the_command_says_it_and_runs(tmp_path: Path, pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net, out = tmp_path / "net.mlir", tmp_path / "net.bmodel"
    save_module(conv_net(), net)
    made = [str(net), "--target", "bm1684x", "--letterbox", "--std", "255", "--camera", "44x60", "-o", str(out)]
    assert run_command(compile.cli, "bmnet-compile", made) == 2
    assert "--camera is what --fuse-preprocess takes" in capsys.readouterr().err
    assert run_command(compile.cli, "bmnet-compile", [*made, "--fuse-preprocess", "rgb-nhwc"]) == 0
    assert run_command(tool.cli, "bmnet-tool", ["info", str(out)]) == 0
    assert "pictures of 44x60, of which the model makes 16x24" in capsys.readouterr().out
    assert run_command(run.cli, "bmnet-run", [str(out), "--images", str(pictures)]) == 0


def test_saved_ir_says_what_becomes_of_pictures(tmp_path: Path, pictures: Path) -> None:
    """Also where the network has the camera's layers in it already."""
    for more in ({}, {"fuse_preprocess": "rgb-nhwc"}):
        said = Preprocessing(**DETECTOR, camera=CAMERA if more else None)
        saved = tmp_path / "saved.mlir"
        first = bmcompiler.compile_module(
            conv_net(), target="bm1684x", preprocess=said, save_ir=saved, check="never", **more
        )
        again = bmcompiler.compile(saved, target="bm1684x", check="never")
        one, other = Session(first.model), Session(again.model)
        assert one.preprocessing == other.preprocessing is not None
        given = one.images(pictures)
        np.testing.assert_array_equal(one.run(given)["out"], other.run(given)["out"])


def test_what_cannot_be_is_a_sentence() -> None:
    with pytest.raises(UsageError, match="camera_nearest says how camera is scaled, which is not given"):
        Preprocessing(camera_nearest=True)
    with pytest.raises(UsageError, match=r"camera must be two sizes from 1 to 16384, got \(0, 4\)"):
        Preprocessing(camera=(0, 4))
    several = Preprocessing(letterbox=(1, 2, 3), camera=CAMERA)
    with pytest.raises(UsageError, match="letterbox must be one number for all channels"):
        bmcompiler.compile_module(conv_net(), target="bm1684x", preprocess=several, fuse_preprocess="as-trained")
