"""--fuse-preprocess: models that take the bytes of a camera give what the host's preparation gives, on each chip."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bmcompiler
from bmcompiler.analysis.profile import analysis_of
from bmcompiler.cli import compile, run, tool
from bmcompiler.cli.common import run as run_command
from bmcompiler.errors import BMError, UsageError
from bmcompiler.files.mlir import save_module
from bmcompiler.inputs import ImageOptions
from bmcompiler.inputs.camera import fuse
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, TensorType, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.options import PIXELS, Preprocessing
from bmcompiler.runtime import Session

RANDOM = np.random.default_rng(7)
DETECTOR = {"letterbox": 114, "std": 255}
CLASSIFIER = {
    **{"mean": (123.7, 116.3, 103.5), "std": (58.4, 57.1, 57.4)},
    **{"channel_order": "bgr", "resize": (20, 30), "keep_aspect": True},
}
FOCUS = {"mean": (0, 127.5, 200), "scale": (0.01, 0.02, 0.03)}
CHIPS = [("bm1880", "int8", 0.04), ("bm1684", "f32", 1e-5), ("bm1684", "int8", 0.04), ("bm1684x", "f16", 4e-3)]
CHIPS += [("bm1684x", "int8", 0.04)]


def conv_net(shape: tuple[int, ...] = (2, 3, 16, 24)) -> Module:
    """A padded convolution: its border sees zeros that stand for the mean, not for black."""
    b = Builder.new("net")
    weight = b.weight(np.random.default_rng(1).normal(size=(8, shape[1], 3, 3)).astype(np.float32))
    x = b.relu(b.conv(b.input("image", TensorType(shape)), weight, pads=(1, 1, 1, 1), strides=(2, 2)))
    return b.outputs([x], ["out"])


def focus_net() -> Module:
    """Phases of pixels as channels, as the first layer of YOLO has them: channels are no weights' alone."""
    b = Builder.new("net")
    x = b.input("image", TensorType((1, 3, 16, 24)))
    phases = [b.slice(x, starts=(0, 0, y, z), ends=(1, 3, 16, 24), steps=(1, 1, 2, 2)) for y in (0, 1) for z in (0, 1)]
    weight = b.weight(np.random.default_rng(1).normal(size=(8, 12, 3, 3)).astype(np.float32))
    return b.outputs([b.conv(b.concat(*phases, axis=1), weight, pads=(1, 1, 1, 1))], ["out"])


def gray_net() -> Module:
    return conv_net((1, 1, 16, 24))


def nhwc_net() -> Module:
    """A network whose own layout is NHWC."""
    b = Builder.new("net")
    x = b.permute(b.input("image", TensorType((1, 16, 24, 3))), order=(0, 3, 1, 2))
    weight = b.weight(np.random.default_rng(1).normal(size=(8, 3, 3, 3)).astype(np.float32))
    return b.outputs([b.conv(x, weight, pads=(1, 1, 1, 1))], ["out"])


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of odd sizes and all kinds, some smaller than the input."""
    folder = tmp_path_factory.mktemp("photos")
    for number, mode in enumerate(["RGB", "L", "RGBA", "P", "1"] * 4):
        small = RANDOM.integers(0, 256, (3 + number % 3, 5, 3), np.uint8)
        size = (7 + 11 * (number % 4), 41 - 9 * (number % 4))
        Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).convert(mode).save(folder / f"{number:02}.png")
    return folder


def prepared(taken: np.ndarray, left: Preprocessing, said: Preprocessing) -> np.ndarray:
    """What the host makes of pixels for a network that takes NCHW: those of the cut middle, by the formula."""
    planes = taken.transpose(0, 3, 1, 2) if left.layout == "nhwc" else taken
    middle = planes[:, :, 2:18, 3:27] if said.resize else planes
    ordered = middle[:, ::-1] if left.channel_order != said.channel_order else middle
    numbers = (said.mean, said.std or 1, said.scale or 1)
    mean, std, scale = (np.broadcast_to(each, ordered.shape[1]).reshape(1, -1, 1, 1) for each in numbers)
    return ((ordered - mean) / std * scale).astype(np.float32)


def meaning(module: Module, image: np.ndarray) -> np.ndarray:
    return run_module(module, {"image": image})["out"]


def compiled(module: Module, given: dict[str, object], photos: Path, target: str, precision: str, **more: object):
    said = {"images": ImageOptions(photos, **given)} if precision == "int8" else {"preprocess": Preprocessing(**given)}
    return bmcompiler.compile_module(module, target=target, quantize=precision, **said, **more)


@pytest.mark.parametrize(("target", "precision", "near"), CHIPS)
@pytest.mark.parametrize(
    ("net", "given", "pixels"),
    [
        (conv_net, DETECTOR, "as-trained"),
        (conv_net, DETECTOR, "bgr-nhwc"),
        (conv_net, CLASSIFIER, "rgb-nchw"),
        (conv_net, CLASSIFIER, "bgr-nhwc"),
        (focus_net, FOCUS, "bgr-nhwc"),
        (gray_net, {"mean": 100, "letterbox": 100}, "rgb-nhwc"),
        (nhwc_net, DETECTOR, "bgr-nchw"),
    ],
)
def test_the_model_does_what_the_host_did(
    net: Callable[[], Module],
    given: dict[str, object],
    pixels: str,
    target: str,
    precision: str,
    near: float,
    photos: Path,
) -> None:
    host = Session(compiled(net(), given, photos, target, precision).model)
    result = compiled(net(), given, photos, target, precision, fuse_preprocess=pixels, check="always")
    session = Session(result.model)
    (info,) = session.inputs
    assert info.dtype == "uint8" and (4 * info.size == host.inputs[0].size or precision == "int8" or "resize" in given)
    assert " on the host CPU" not in str(result).replace("none on the host CPU", ""), "nothing of it is the host's"
    found = session.run(session.images(photos))["out"]
    if "resize" in given:  # Pillow sees no pixels outside of what it cuts out itself
        taken = np.asarray(session.images(photos)[info.name])
        wanted = host.run(prepared(taken, session.preprocessing or Preprocessing(), Preprocessing(**given)))["out"]
    else:
        wanted = host.run(host.images(photos))["out"]
    assert np.abs(found - wanted).max() <= near * np.abs(wanted).max()
    box = [[2, 3, 20, 14]]
    np.testing.assert_allclose(session.to_image(box, (50, 70)), host.to_image(box, (50, 70)))


@pytest.mark.parametrize("pixels", PIXELS)
@pytest.mark.parametrize("given", [DETECTOR, CLASSIFIER, FOCUS])
def test_a_fused_network_means_the_formula(pixels: str, given: dict[str, object]) -> None:
    """In floats: value = (pixel - mean) * scale of the cut middle, with the padding behind it."""
    module, float_net, said = conv_net(), conv_net(), Preprocessing(**given)
    left = fuse(module, said, pixels)
    taken = RANDOM.integers(0, 256, module.main.arguments[0].shape, np.uint8)
    values = prepared(taken, left, said)
    wanted, found = meaning(float_net, values), meaning(module, taken)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("given", [DETECTOR, FOCUS], ids=["scale", "mean"])
def test_pixels_stay_bytes_with_all_their_bits(given: dict[str, object]) -> None:
    """They became floats, then codes of seven bits, before mean and scale were applied: 163 us where it takes 104."""
    module, options = conv_net((1, 3, 64, 64)), Preprocessing(**given)  # type: ignore[arg-type]
    fuse(module, options, "rgb-nhwc")
    data = {"image": np.random.default_rng(2).integers(0, 256, (4, 64, 64, 3), np.uint8)}
    made = bmcompiler.compile_module(module, target="bm1684x", quantize="int8", data=data, check="always")
    ops = [op.short_name for op in made.module.main.ops if op.short_name not in ("weight", "permute")]
    assert ops[: ops.index("dequantize")] == ["conv"] * (2 if "mean" in given else 1)


def test_weights_that_others_read_keep_their_order() -> None:
    b = Builder.new("net")
    x, weight = (
        b.input("image", TensorType((1, 3, 8, 8))),
        b.weight(RANDOM.normal(size=(3, 3, 1, 1)).astype(np.float32)),
    )
    first = b.conv(x, weight)
    module = b.outputs([b.conv(first, weight)], ["out"])
    before = [module.weights[name].copy() for name in module.weights]
    fuse(module, Preprocessing(), "bgr-nchw")
    for name, array in zip(list(module.weights), before):
        np.testing.assert_array_equal(module.weights[name], array)
    pixels = RANDOM.integers(0, 256, (1, 3, 8, 8), np.uint8)
    matrix = before[0][:, :, 0, 0].astype(np.float64)
    wanted = np.einsum("oi,nihw->nohw", matrix @ matrix, pixels[:, ::-1].astype(np.float64))
    np.testing.assert_allclose(meaning(module, pixels), wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("apart", [False, True])
def test_first_convolutions_that_share_weights_turn_them_once(apart: bool, photos: Path) -> None:
    """Read by first convolutions only, or by one behind them, too."""
    numbers = RANDOM.normal(size=(3, 3, 3, 3)).astype(np.float32)

    def shared() -> Module:
        b = Builder.new("net")
        x, weight = b.input("image", TensorType((2, 3, 16, 24))), b.weight(numbers)
        both = b.add(b.conv(x, weight, pads=(1, 1, 1, 1)), b.relu(b.conv(x, weight, pads=(1, 1, 1, 1))))
        return b.outputs([b.conv(both, weight, pads=(1, 1, 1, 1)) if apart else both], ["out"])

    host = Session(compiled(shared(), FOCUS, photos, "bm1684x", "f32").model)
    result = compiled(shared(), FOCUS, photos, "bm1684x", "f32", fuse_preprocess="bgr-nhwc", check="always")
    session = Session(result.model)
    found, wanted = session.run(session.images(photos))["out"], host.run(host.images(photos))["out"]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_commands_say_it_and_follow_it(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_module(conv_net(), tmp_path / "net.mlir")
    made = [str(tmp_path / "net.mlir"), "--target", "bm1684x", "--quantize", "f16", "-o", str(tmp_path / "net.bmodel")]
    said = ["--letterbox", "--std", "255", "--fuse-preprocess", "bgr-nhwc"]
    assert run_command(compile.cli, "bmnet-compile", [*made, *said]) == 0
    assert run_command(tool.cli, "bmnet-tool", ["info", str(tmp_path / "net.bmodel")]) == 0
    shown = capsys.readouterr().out
    assert "input: image, [2, 16, 24, 3], uint8" in shown
    assert "pictures: bgr, NHWC, letterboxed to 16x24 on 114 (center), (pixel - 0) * 1" in shown
    assert run_command(run.cli, "bmnet-run", [str(tmp_path / "net.bmodel"), "--images", str(photos)]) == 0
    assert capsys.readouterr().err == ""
    assert run_command(compile.cli, "bmnet-compile", [*made, "--fuse-preprocess", "yuv"]) == 2
    assert "rgb-nhwc" in capsys.readouterr().err


def test_networks_that_cannot_are_told_why(photos: Path) -> None:
    def two() -> list[Value]:
        return [b.add(b.input("a", TensorType((1, 3, 4, 4))), b.input("b", TensorType((1, 3, 4, 4))))]

    b = Builder.new("net")
    with pytest.raises(UsageError, match="fuse_preprocess is for networks with one input, this one has 2"):
        bmcompiler.compile_module(b.outputs(two(), ["out"]), target="bm1684", fuse_preprocess="as-trained")
    b = Builder.new("net")
    words = b.outputs([b.cast(b.input("ids", TensorType((1, 3, 4, 4), "i32")), dtype="f32")], ["out"])
    with pytest.raises(UsageError, match="input 'ids' takes i32"):
        bmcompiler.compile_module(words, target="bm1684", fuse_preprocess="as-trained")
    b = Builder.new("net")
    flat = b.outputs([b.relu(b.input("x", TensorType((1, 30))))], ["out"])
    with pytest.raises(BMError, match="is no image of 1 or 3 channels"):
        bmcompiler.compile_module(flat, target="bm1684", fuse_preprocess="as-trained")
    with pytest.raises(UsageError, match="fuse_preprocess must be as-trained, rgb-nchw"):
        bmcompiler.compile_module(conv_net(), target="bm1684", fuse_preprocess="yuv")
    values = {"image": RANDOM.normal(size=(20, 3, 16, 24)).astype(np.float32)}
    with pytest.raises(BMError, match="whole numbers"):
        bmcompiler.compile_module(conv_net(), target="bm1880", data=values, fuse_preprocess="as-trained")


@pytest.mark.parametrize(
    ("precision", "size", "given"), [("f32", 320, FOCUS), ("f16", 224, FOCUS | {"resize": (256, 256)})]
)
def test_no_copy_of_the_picture_passes_global_memory(
    precision: str, size: int, given: dict[str, object], photos: Path
) -> None:
    """Cut, made floats and scaled beside the convolution, in its slices where all of them do not fit."""
    module = conv_net((1, 3, size, size))
    made = compiled(module, given, photos, "bm1684x", precision, fuse_preprocess="rgb-nchw", check="never")
    assert analysis_of("bm1684x", made.model).timing().spill == 0
