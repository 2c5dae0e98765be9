"""Images on the command line: the same model and results as from arrays, and mistakes in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bmcompiler import bmodel
from bmcompiler.bmodel.layers import PICTURES
from bmcompiler.cli import calibrate, compile, run
from bmcompiler.cli.common import run as run_command
from bmcompiler.driver import compile_network
from bmcompiler.errors import UsageError
from bmcompiler.inputs import ImageOptions, open_inputs
from bmcompiler.options import Options
from bmcompiler.runtime import Session

ROOT = Path(__file__).resolve().parents[2]
LENET = [str(ROOT / "models/lenet/deploy.prototxt"), str(ROOT / "models/lenet/lenet.caffemodel")]
COUNT = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """digits/000.png ..., the same values in calib.npz, and lenet.bmodel compiled from the images."""
    folder = tmp_path_factory.mktemp("images")
    digits = np.load(ROOT / "models/digits.npz")["calib"][:COUNT].reshape(COUNT, 28, 28)
    (folder / "digits").mkdir()
    for number, digit in enumerate(digits):
        Image.fromarray(digit).save(folder / "digits" / f"{number:03}.png")
    values = (digits[:, None].astype(np.float32) - np.float32(33)) * np.float32(0.004)
    np.savez(folder / "calib.npz", data=values)
    np.save(folder / "calib.npy", values)
    assert compiled(folder, "lenet.bmodel", "--images", str(folder / "digits"), *PREPARED) == 0
    return folder


PREPARED = ("--mean", "33", "--scale", "0.004")


def compiled(folder: Path, output: str, *options: str) -> int:
    arguments = [*LENET, "--target", "bm1880", "-o", str(folder / output), *options]
    return run_command(compile.cli, "bmnet-compile", arguments)


def without_note(path: Path) -> bytes:
    """The model but for what it says of pictures."""
    model = bmodel.load(path)
    model.note(PICTURES, "")
    return b"".join(model.parts())


def in_one_line(text: str) -> str:
    """Without the line breaks of a narrow terminal."""
    return " ".join(text.split())


def test_images_compile_to_the_model_of_the_same_arrays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert compiled(folder, "again.bmodel", "--images", str(folder / "digits"), *PREPARED) == 0
    shown = f"20 images from {folder / 'digits'}, gray, NCHW, resized to 28x28, (pixel - 33) * 0.004"
    assert f"note: calibrated on {shown}" in in_one_line(capsys.readouterr().out)
    for name in ("calib.npz", "calib.npy"):
        assert compiled(folder, "arrays.bmodel", "--data", str(folder / name)) == 0
        assert f"note: calibrated on 20 samples from {folder / name}" in in_one_line(capsys.readouterr().out)
        assert (folder / "arrays.bmodel").read_bytes() == without_note(folder / "again.bmodel")


def test_images_run_like_the_same_arrays_and_name_the_best_classes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(folder / "lenet.bmodel")
    images = ["--images", str(folder / "digits"), *PREPARED, "-o", str(folder / "images.npz")]
    assert run_command(run.cli, "bmnet-run", [model, *images]) == 0
    by_images = capsys.readouterr().out
    assert "best classes" in by_images and "019.png" in by_images
    assert (
        run_command(run.cli, "bmnet-run", [model, "--data", str(folder / "calib.npz"), "-o", str(folder / "a.npz")])
        == 0
    )
    assert "best classes" not in capsys.readouterr().out
    assert (folder / "images.npz").read_bytes() == (folder / "a.npz").read_bytes()
    best = np.load(folder / "images.npz")["prob"].argmax(axis=1)
    rows = [line for line in by_images.splitlines() if ".png" in line]
    assert [int(row.split()[1]) for row in rows] == best.tolist()


def test_images_make_the_same_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, source in {
        "a": ["--images", str(folder / "digits"), *PREPARED],
        "b": ["--data", str(folder / "calib.npz")],
    }.items():
        assert (
            run_command(calibrate.cli, "bmnet-calibrate", [*LENET, *source, "-o", str(folder / f"{name}.table")]) == 0
        )
        assert "calibrated on 20" in capsys.readouterr().out
    assert (folder / "a.table").read_bytes() == (folder / "b.table").read_bytes()


def test_a_limit_compiles_calibrates_and_runs_on_the_first_samples(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(folder / "three.npz", data=np.load(folder / "calib.npy")[:3])
    images, few = ["--images", str(folder / "digits"), *PREPARED, "--limit", "3"], str(folder / "three.npz")
    first = f"the first 3 of 20 images from {folder / 'digits'}, gray"
    assert compiled(folder, "limited.bmodel", *images) == 0
    assert f"note: calibrated on {first}" in in_one_line(capsys.readouterr().out)
    assert compiled(folder, "three.bmodel", "--data", few) == 0
    assert without_note(folder / "limited.bmodel") == (folder / "three.bmodel").read_bytes()
    for name, source in {"limited": images, "three": ["--data", few]}.items():
        arguments = [*LENET, *source, "-o", str(folder / f"{name}.table")]
        assert run_command(calibrate.cli, "bmnet-calibrate", arguments) == 0
    assert f"calibrated on {first}" in capsys.readouterr().out
    assert (folder / "limited.table").read_bytes() == (folder / "three.table").read_bytes()
    for name, source in {"limited": images, "three": ["--data", few]}.items():
        arguments = [str(folder / "lenet.bmodel"), *source, "-o", str(folder / f"{name}_out.npz")]
        assert run_command(run.cli, "bmnet-run", arguments) == 0
    shown = capsys.readouterr().out
    assert f"input: {first}" in shown and "002.png" in shown and "003.png" not in shown
    assert (folder / "limited_out.npz").read_bytes() == (folder / "three_out.npz").read_bytes()


def test_the_library_takes_images_too(folder: Path) -> None:
    images = ImageOptions(folder / "digits", mean=33, scale=0.004)
    result = compile_network(LENET[0], LENET[1], Options(images=images))
    assert "20 images" in result.notes[0] and result.warnings == []
    session = Session(result.model)
    scores = session.run(open_inputs(images).bind(session.inputs))["prob"]
    wanted = session.run({"data": np.load(folder / "calib.npy")})["prob"]
    np.testing.assert_array_equal(scores, wanted)
    with pytest.raises(UsageError, match="exclude"):
        compile_network(LENET[0], LENET[1], Options(images=images, data=folder / "calib.npz"))
    arrays = {"data": np.load(folder / "calib.npy")}
    assert "3 samples" in compile_network(LENET[0], LENET[1], Options(data=arrays, limit=3)).notes[0]
    with pytest.raises(UsageError, match="1 or more, got 0"):
        compile_network(LENET[0], LENET[1], Options(data=arrays, limit=0))


def test_warnings_are_told_even_quietly(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = str(folder / "digits" / "003.png")
    assert compiled(folder, "one.bmodel", "--images", one, "--std", "255", "--quiet") == 0
    out = capsys.readouterr()
    assert out.out == "" and out.err.startswith("warning: 1 calibration sample cannot")
    assert compiled(folder, "one.bmodel", "--images", one, "--std", "255") == 0
    assert "\nwarning: 1 calibration sample cannot" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--images", "{digits}", "--data", "{npz}"], 2, "exclude each other"),
        (["--images", "{digits}", "--mean", "1,x"], 2, "'1,x' is no number"),
        (["--images", "{digits}", "--mean", "1,2,3"], 2, "mean has 3 numbers"),
        (["--images", "{digits}", "--scale", "0"], 2, "scale must not be 0"),
        (["--images", "{digits}", "--resize", "28"], 2, "'28' is not like 256x256"),
        (["--images", "{digits}", "--resize", "20x20"], 2, "smaller than input 'data', 28x28"),
        (["--images", "{digits}", "--layout", "nhwc"], 1, "in nhwc"),
        (["--images", "{digits}", "--letterbox", "300"], 2, "--letterbox must be a pixel"),
        (["--letterbox", "--images", "{digits}", "--keep-aspect"], 2, "--letterbox and --keep-aspect exclude"),
        (["--letterbox", "net.onnx", "--images", "{digits}"], 2, "put file names ahead of the options"),
        (["--images", "{digits}", "--pad", "center"], 2, "--pad says where --letterbox fills"),
        (["--images", "{digits}/missing"], 1, "missing: No such file"),
        (["--images", "{npz}"], 1, "calib.npz: the image cannot be read (it is no image)"),
        (["--images", "{digits}", "--limit", "0"], 2, "'--limit': 0 is not in the range x>=1"),
        (["--limit", "5"], 2, "a limit of samples, but there are no samples"),
        (["--data", "{digits}"], 1, "no .npy or .npz file"),
    ],
)
def test_mistakes_end_in_one_line(
    options: list[str], status: int, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [each.format(digits=folder / "digits", npz=folder / "calib.npz") for each in options]
    assert compiled(folder, "none.bmodel", *filled) == status
    message = capsys.readouterr().err
    assert message.startswith("bmnet-compile: ") and words in message and message.count("\n") == 1
    assert not (folder / "none.bmodel").exists()


def test_a_damaged_image_is_named_and_nothing_is_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (folder / "digits").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "004.png").write_bytes((folder / "digits" / "004.png").read_bytes()[:150])
    arguments = [str(folder / "lenet.bmodel"), "--images", str(tmp_path), "-o", str(tmp_path / "out.npz")]
    assert run_command(run.cli, "bmnet-run", arguments) == 1
    message = capsys.readouterr().err
    assert "004.png: the image cannot be read" in message and message.count("\n") == 1
    assert not (tmp_path / "out.npz").exists()


def test_tables_of_scores_need_one_row_per_image() -> None:
    names = [f"{n}.png" for n in range(25)]
    scores = np.eye(25, 10, dtype=np.float32)
    text = run.top_scores(names, {"prob": scores})
    assert "5 more images" in text and "3.png" in text
    assert run.top_scores(names, {"prob": scores.reshape(1, 1, 25, 10)}) == text
    assert run.top_scores(names, {"prob": scores, "other": scores}) == ""
    assert run.top_scores(names, {"map": np.zeros((25, 4, 7, 7))}) == ""
    assert run.top_scores(names, {"one": np.zeros((25, 1))}) == ""
    assert run.top_scores(names[:1], {"prob": scores[:1].reshape(1, 10, 1, 1)}).count("\n") == 3
