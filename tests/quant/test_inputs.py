"""Samples from files, folders and images: what is read, how it is cut into steps, and what mistakes are called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bmcompiler.errors import BMError, CalibrationError, FileFormatError, UnsupportedError, UsageError
from bmcompiler.inputs import ImageOptions, InputData, Samples, decode, open_inputs
from bmcompiler.inputs.advice import WARNING, data_notes
from bmcompiler.ir import Function, Module, TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.quant.calibration import Settings, calibrate
from bmcompiler.quant.data import bind_data, check_data

COLOUR = Function("net", [TensorType((1, 3, 8, 10))], ["data"])
TWO = Function("net", [TensorType((1, 2)), TensorType((1, 3))], ["a", "b"])
RANDOM = np.random.default_rng(3)
GOOD = RANDOM.normal(size=(6, 3, 8, 10)).astype(np.float32)


def image_net(*shape: int) -> Function:
    return Function("net", [TensorType(shape)], ["data"])


def save_images(folder: Path, count: int, size: tuple[int, int] = (8, 10), mode: str = "RGB") -> np.ndarray:
    """PNG files 00.png, ...; the pixels (count, height, width[, 3])."""
    pixels = RANDOM.integers(0, 256, (count, *size, 3) if mode == "RGB" else (count, *size), np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(pixels):
        Image.fromarray(each).save(folder / f"{number:02}.png")
    return pixels


def read(path: Path | ImageOptions, function: Function = COLOUR) -> dict[str, np.ndarray]:
    return {name: np.asarray(array) for name, array in check_data(function, open_inputs(path)).items()}


# -- files and folders -----------------------------------------------------------------------------------------------
def test_an_npy_holds_all_samples_or_one(tmp_path: Path) -> None:
    np.save(tmp_path / "all.npy", GOOD)
    np.save(tmp_path / "one.npy", np.asfortranarray(GOOD[0]))
    np.testing.assert_array_equal(read(tmp_path / "all.npy")["data"], GOOD)
    np.testing.assert_array_equal(read(tmp_path / "one.npy")["data"], GOOD[:1])


def test_the_only_array_of_an_npz_needs_no_name_for_the_only_input(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", GOOD)
    np.testing.assert_array_equal(read(tmp_path / "c.npz")["data"], GOOD)


def test_a_folder_mixes_samples_and_batches_in_order_of_names(tmp_path: Path) -> None:
    np.save(tmp_path / "0.npy", GOOD[0])
    np.save(tmp_path / "1.npy", GOOD[1:4])
    np.savez(tmp_path / "2.npz", data=GOOD[4])
    np.savez(tmp_path / "3.npz", GOOD[5:])
    (tmp_path / "readme.txt").write_text("not a sample")
    np.testing.assert_array_equal(read(tmp_path)["data"], GOOD)


def test_nets_of_several_inputs_take_npz_samples_or_a_file_per_input(tmp_path: Path) -> None:
    a, b = RANDOM.normal(size=(4, 2)).astype(np.float32), RANDOM.normal(size=(4, 3)).astype(np.float32)
    for number in range(4):
        (tmp_path / "samples").mkdir(exist_ok=True)
        np.savez(tmp_path / "samples" / f"{number}.npz", a=a[number], b=b[number])
    (tmp_path / "inputs").mkdir()
    np.save(tmp_path / "inputs" / "a.npy", a)
    np.save(tmp_path / "inputs" / "b.npy", b)
    for folder in ("samples", "inputs"):
        found = read(tmp_path / folder, TWO)
        np.testing.assert_array_equal(found["a"], a)
        np.testing.assert_array_equal(found["b"], b)


def test_a_folder_keeps_one_file_in_memory(tmp_path: Path) -> None:
    for number in range(6):
        np.save(tmp_path / f"{number}.npy", GOOD[number])
    samples = check_data(COLOUR, open_inputs(tmp_path))["data"]
    assert isinstance(samples, Samples) and samples.shape == GOOD.shape
    np.testing.assert_array_equal(samples[4:6], GOOD[4:6])
    np.testing.assert_array_equal(samples.take([5, 0, 5]), GOOD[[5, 0, 5]])


@pytest.mark.parametrize("limit", [1, 3, 6, 100])
def test_a_limit_takes_the_first_samples_of_anything(limit: int, tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", data=GOOD)
    (tmp_path / "parts").mkdir()
    np.save(tmp_path / "parts" / "0.npy", GOOD[:2])
    np.save(tmp_path / "parts" / "1.npy", GOOD[2:])
    for source, whole in {"all.npz": "6 samples from", "parts": "6 samples in 2 files of"}.items():
        bound = bind_data(COLOUR, open_inputs(tmp_path / source, limit))
        np.testing.assert_array_equal(np.asarray(bound["data"]), GOOD[:limit])
        assert bound.description == (f"the first {limit} of {whole}" if limit < 6 else whole) + f" {tmp_path / source}"


def test_a_limit_takes_the_first_images_and_reads_no_other(tmp_path: Path) -> None:
    pixels = save_images(tmp_path, 4)
    (tmp_path / "03.png").write_bytes(b"damaged")
    bound = bind_data(COLOUR, open_inputs(ImageOptions(tmp_path), 3))
    np.testing.assert_array_equal(np.asarray(bound["data"]), pixels[:3].transpose(0, 3, 1, 2))
    assert bound.names == [str(tmp_path / f"{n:02}.png") for n in range(3)]
    assert bound.description is not None and bound.description.startswith(f"the first 3 of 4 images from {tmp_path}, ")


@pytest.mark.parametrize("limit", [0, -2])
def test_a_limit_below_one_is_refused(limit: int, tmp_path: Path) -> None:
    np.save(tmp_path / "all.npy", GOOD)
    with pytest.raises(UsageError, match=f"must be 1 or more, got {limit}"):
        open_inputs(tmp_path / "all.npy", limit)


@pytest.mark.parametrize(
    ("files", "function", "words"),
    [
        ({}, COLOUR, ["no .npy or .npz", "use images"]),
        ({"0.npy": GOOD[0], "1.npy": GOOD[0, :, :4]}, COLOUR, ["1.npy", "[3, 4, 10]", "[3, 8, 10]"]),
        ({"0.npy": GOOD.transpose(0, 2, 3, 1)}, COLOUR, ["looks NHWC", "transpose(0, 3, 1, 2)"]),
        ({"a.npy": GOOD[0]}, TWO, ["a.npy", "2 inputs", ".npz"]),
        ({"0.npy": np.array(["x"])}, COLOUR, ["0.npy", "<U1"]),
        ({"0.npy": np.full((3, 8, 10), np.nan)}, COLOUR, ["NaN"]),
        ({"0.npy": np.zeros((3, 8, 10)), "1.npy": np.zeros((3, 8, 10))}, COLOUR, ["constant"]),
        ({"0.npy": np.float32(4)}, COLOUR, ["0.npy", "shape"]),
    ],
)
def test_folders_that_cannot_be_right_say_why(
    files: dict[str, np.ndarray], function: Function, words: list[str], tmp_path: Path
) -> None:
    for name, array in files.items():
        np.save(tmp_path / name, array)
    with pytest.raises(CalibrationError) as error:
        read(tmp_path, function)
    for word in (str(tmp_path), *words):
        assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_damaged_npy_files_end_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "c.npy"
    np.save(path, GOOD[:1])
    original = path.read_bytes()
    changed = [original[:n] for n in range(1, len(original), 50)]
    for _ in range(500):
        data = bytearray(original)
        for position in RANDOM.integers(0, 128, 2):
            data[position] = RANDOM.integers(256)
        changed.append(bytes(data))
    for data in changed:
        path.write_bytes(data)
        try:
            read(path)
        except CalibrationError as error:
            assert "\n" not in str(error)


# -- images ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", ["rgb", "bgr"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_pixels_lose_the_mean_and_are_scaled(order: str, layout: str, tmp_path: Path) -> None:
    pixels = save_images(tmp_path, 3)
    mean, scale = np.array([120, 110, 100], np.float32), np.array([0.5, 0.25, 2], np.float32)
    net = COLOUR if layout == "nchw" else image_net(1, 8, 10, 3)
    options = ImageOptions(tmp_path, mean=mean.tolist(), scale=scale.tolist(), channel_order=order)
    wanted = ((pixels if order == "rgb" else pixels[..., ::-1]).astype(np.float32) - mean) * scale
    wanted = wanted.transpose(0, 3, 1, 2) if layout == "nchw" else wanted
    np.testing.assert_array_equal(read(options, net)["data"], wanted)
    described = bind_data(net, open_inputs(options)).description or ""
    assert (
        f"3 images from {tmp_path}, {order}, {layout.upper()}, resized to 8x10, (pixel - [120, 110, 100])" in described
    )


def test_std_is_one_over_scale(tmp_path: Path) -> None:
    save_images(tmp_path, 2)
    by_std = read(ImageOptions(tmp_path, mean=127.5, std=(50, 20, 10)))["data"]
    by_scale = read(ImageOptions(tmp_path, mean=(127.5,) * 3, scale=(0.02, 0.05, 0.1)))["data"]
    np.testing.assert_array_equal(by_std, by_scale)


def test_one_channel_is_gray_and_gray_files_become_colour(tmp_path: Path) -> None:
    pixels = save_images(tmp_path, 2, mode="L")
    np.testing.assert_array_equal(read(ImageOptions(tmp_path), image_net(1, 1, 8, 10))["data"][:, 0], pixels)
    for channel in range(3):
        np.testing.assert_array_equal(read(ImageOptions(tmp_path))["data"][:, channel], pixels)


def test_files_of_other_kinds_and_modes(tmp_path: Path) -> None:
    pixels = save_images(tmp_path / "a", 1)[0]
    (tmp_path / "b").mkdir()
    Image.fromarray(pixels).convert("RGBA").save(tmp_path / "b" / "1.PNG")
    Image.fromarray(pixels).save(tmp_path / "b" / "2.bmp")
    Image.fromarray(pixels).save(tmp_path / "b" / "3.tiff")
    Image.fromarray(pixels).save(tmp_path / "b" / "4.webp", lossless=True)
    Image.fromarray(pixels).save(tmp_path / "b" / "5.ppm")
    (tmp_path / "b" / ".hidden.png").write_text("no image")
    (tmp_path / "labels.txt").write_text("no image")
    found = read(ImageOptions(tmp_path))["data"]
    assert found.shape == (6, 3, 8, 10)
    assert (found == pixels.transpose(2, 0, 1)).all()


def test_sixteen_bits_become_eight(tmp_path: Path) -> None:
    values = RANDOM.integers(0, 1 << 16, (8, 10), dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / "deep.png")
    np.testing.assert_array_equal(read(ImageOptions(tmp_path), image_net(1, 1, 8, 10))["data"][0, 0], values >> 8)


def test_cameras_orientation_is_applied(tmp_path: Path) -> None:
    pixels = RANDOM.integers(0, 256, (10, 8, 3), np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by 90 degrees clockwise
    Image.fromarray(pixels).save(tmp_path / "turned.png", exif=exif)
    found = read(ImageOptions(tmp_path))["data"][0].transpose(1, 2, 0)
    np.testing.assert_array_equal(found, np.rot90(pixels, -1))


def test_the_middle_of_the_resized_image_is_cut_out(tmp_path: Path) -> None:
    pixels = save_images(tmp_path, 1, size=(12, 20))[0]
    found = read(ImageOptions(tmp_path, resize=(12, 20)))["data"][0].transpose(1, 2, 0)
    np.testing.assert_array_equal(found, pixels[2:10, 5:15])


def test_keep_aspect_cuts_what_stretching_would_squeeze(tmp_path: Path) -> None:
    picture = np.zeros((16, 60, 3), np.uint8)
    picture[:, 18:42] = 255  # 16 x 20 in the middle is what an input of 8 x 10 sees
    Image.fromarray(picture).save(tmp_path / "wide.png")
    samples = bind_data(COLOUR, open_inputs(ImageOptions(tmp_path, keep_aspect=True)))["data"]
    assert np.asarray(samples).min() == 255
    assert read(ImageOptions(tmp_path))["data"].min() == 0


def test_scaling_is_bilinear_as_pillow_does_it(tmp_path: Path) -> None:
    pixels = save_images(tmp_path, 1, size=(33, 47))[0]
    wanted = np.asarray(Image.fromarray(pixels).resize((10, 8), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(read(ImageOptions(tmp_path))["data"][0].transpose(1, 2, 0), wanted)


def test_extreme_shapes_cost_nothing(tmp_path: Path) -> None:
    Image.fromarray(RANDOM.integers(0, 256, (1, 30000, 3), np.uint8)).save(tmp_path / "line.png")
    assert read(ImageOptions(tmp_path, keep_aspect=True))["data"].shape == (1, 3, 8, 10)


def test_images_are_decoded_when_they_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_images(tmp_path, 40)
    read_files: list[str] = []
    monkeypatch.setattr(
        "bmcompiler.inputs.images.picture",
        lambda file, *rest: (read_files.append(file.name), decode.picture(file, *rest))[1],
    )
    samples = bind_data(COLOUR, open_inputs(ImageOptions(tmp_path)))["data"]
    assert read_files == []
    assert samples[7:9].shape == (2, 3, 8, 10)
    assert read_files == ["07.png", "08.png"]


@pytest.mark.parametrize(
    ("options", "function", "kind", "words"),
    [
        ({"mean": (1, 2)}, COLOUR, UsageError, "mean has 2 numbers.*3 channels"),
        ({"std": (1, 0, 1)}, COLOUR, UsageError, "std must not be 0"),
        ({"mean": float("nan")}, COLOUR, UsageError, "mean must be"),
        ({"scale": 1, "std": 1}, COLOUR, UsageError, "scale = 1 / std"),
        ({"channel_order": "hsv"}, COLOUR, UsageError, "rgb or bgr"),
        ({"layout": "chwn"}, COLOUR, UsageError, "layout"),
        ({"resize": (4, 10)}, COLOUR, UsageError, "smaller than input 'data', 8x10"),
        ({"resize": (0, 10)}, COLOUR, UsageError, "resize must be"),
        ({}, TWO, UsageError, "2: a, b"),
        ({}, image_net(1, 5, 8, 10), UnsupportedError, "no image of 1 or 3 channels"),
        ({"layout": "nhwc"}, COLOUR, UnsupportedError, "in nhwc"),
        ({}, image_net(1, 64), UnsupportedError, "no image"),
        ({}, image_net(1, 3, 8, 1), UnsupportedError, 'say layout="nchw" or "nhwc"'),
    ],
)
def test_options_that_do_not_fit_say_why(
    options: dict[str, object], function: Function, kind: type, words: str, tmp_path: Path
) -> None:
    save_images(tmp_path, 1)
    with pytest.raises(kind, match=words):
        read(ImageOptions(tmp_path, **options), function)  # type: ignore[arg-type]


def test_an_ambiguous_layout_can_be_said(tmp_path: Path) -> None:
    save_images(tmp_path, 1)
    assert read(ImageOptions(tmp_path, layout="nchw"), image_net(1, 3, 8, 1))["data"].shape == (1, 3, 8, 1)


def test_a_folder_without_images_names_itself(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match=r"no image.*use data"):
        open_inputs(ImageOptions(tmp_path))
    with pytest.raises(OSError, match="missing"):
        open_inputs(ImageOptions(tmp_path / "missing.png"))


def test_without_pillow_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UnsupportedError, match=r"Pillow.*pip install 'bmcompiler\[images\]'"):
        open_inputs(ImageOptions(tmp_path))


def test_huge_images_are_refused_before_they_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_images(tmp_path, 1)
    monkeypatch.setattr(decode, "MOST_PIXELS", 79)
    with pytest.raises(FileFormatError, match=r"00\.png.*too large \(10 x 8 pixels\).*shrink"):
        read(ImageOptions(tmp_path))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(FileFormatError, match=r"00\.png.*too large"):
        read(ImageOptions(tmp_path))


SAVERS: dict[str, Callable[[Image.Image, Path], None]] = {
    suffix: lambda image, path: image.save(path) for suffix in ("png", "jpg", "bmp", "gif", "tif", "webp", "ppm")
}


@pytest.mark.parametrize("suffix", SAVERS)
def test_damaged_images_end_in_one_line_that_names_the_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture.{suffix}"
    SAVERS[suffix](Image.fromarray(RANDOM.integers(0, 256, (8, 10, 3), np.uint8)), path)
    original = path.read_bytes()
    changed = [original[:n] for n in np.linspace(0, len(original) - 1, 40).astype(int)]
    for _ in range(300):
        data = bytearray(original)
        for position in RANDOM.integers(0, len(data), RANDOM.integers(1, 6)):
            data[position] = RANDOM.integers(256)
        changed.append(bytes(data))
    failed = 0
    for data in changed:
        path.write_bytes(data)
        try:
            read(ImageOptions(tmp_path))
        except BMError as error:
            failed += 1
            assert "\n" not in str(error) and str(tmp_path) in str(error)
    assert failed > 5


def test_formats_that_run_programs_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EOF\n")
    with pytest.raises(FileFormatError, match="cannot be read"):
        read(ImageOptions(tmp_path))


def test_images_calibrate_like_the_same_values_in_an_array(tmp_path: Path) -> None:
    pixels = save_images(tmp_path, 37)
    values = (pixels.transpose(0, 3, 1, 2).astype(np.float32) - np.float32(100)) * np.float32(0.02)
    b = Builder.new("net")
    weight = RANDOM.normal(size=(4, 3, 1, 1)).astype(np.float32)
    module = b.outputs([b.relu(b.conv(b.input("data", TensorType((1, 3, 8, 10))), b.weight(weight)))], ["out"])
    by_images = calibrate(module, module.main, open_inputs(ImageOptions(tmp_path, mean=100, scale=0.02)), Settings())
    by_array = calibrate(module, module.main, InputData({"data": values}), Settings())
    assert list(by_images.values()) == list(by_array.values())


# -- inputs that do not vary -------------------------------------------------------------------------------------------
def masked_net() -> Module:
    b = Builder.new("masked")
    x, mask = b.input("x", TensorType((1, 8))), b.input("mask", TensorType((1, 8)))
    return b.outputs([b.mul(x, mask)], ["out"])


def test_a_mask_may_be_the_same_in_all_samples_and_is_warned_about() -> None:
    data = {"x": np.random.default_rng(0).standard_normal((20, 8)).astype(np.float32), "mask": np.ones((20, 8))}
    (warning,) = [note for note in data_notes(masked_net(), data) if note.startswith(WARNING)]
    assert "input 'mask' is 1 in all samples" in warning


def test_a_mask_may_be_the_only_input_of_floats() -> None:
    b = Builder.new("tokens")
    ids, mask = b.input("ids", TensorType((1, 8), "i64")), b.input("mask", TensorType((1, 8)))
    module = b.outputs([b.mul(b.cast(ids, dtype="f32"), mask)], ["out"])
    assert check_data(module.main, {"ids": np.arange(160).reshape(20, 8), "mask": np.ones((20, 8))})


def test_something_has_to_vary() -> None:
    data = {"x": np.zeros((20, 8)), "mask": np.ones((20, 8))}
    with pytest.raises(CalibrationError, match=r"array 'x' is constant \(0 everywhere\)"):
        data_notes(masked_net(), data)
