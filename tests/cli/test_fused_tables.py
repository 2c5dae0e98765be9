"""--fuse-preprocess of bmnet-calibrate and bmnet-accuracy: of the network that bmnet-compile makes with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bmcompiler.bmodel import load
from bmcompiler.cli import accuracy, calibrate, compile
from bmcompiler.cli.common import run as run_command
from bmcompiler.files.mlir import save_module
from bmcompiler.ir import TensorType
from bmcompiler.ops.builder import Builder
from bmcompiler.quant.table import load_table

SAID = ["--mean", "100", "--std", "50", "--fuse-preprocess", "rgb-nhwc"]
COMMANDS = {
    "bmnet-compile": compile.cli,
    "bmnet-calibrate": calibrate.cli,
    "bmnet-accuracy": accuracy.cli,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """net.mlir, photos/, and the same pixels as bytes in pixels.npy."""
    folder, random = tmp_path_factory.mktemp("fused"), np.random.default_rng(3)
    b = Builder.new("net")
    weight = b.weight(random.normal(size=(8, 3, 3, 3)).astype(np.float32))
    x = b.relu(b.conv(b.input("image", TensorType((1, 3, 16, 24))), weight, pads=(1, 1, 1, 1)))
    save_module(b.outputs([x], ["out"]), folder / "net.mlir")
    pixels = random.integers(0, 256, (24, 16, 24, 3), np.uint8)
    (folder / "photos").mkdir()
    for number, each in enumerate(pixels):
        Image.fromarray(each).save(folder / "photos" / f"{number:02}.png")
    np.save(folder / "pixels.npy", pixels)
    return folder


def called(folder: Path, command: str, *options: str) -> int:
    return run_command(COMMANDS[command], command, [str(folder / "net.mlir"), *options])


@pytest.mark.parametrize("samples", [["--images", "photos"], ["--data", "pixels.npy"]], ids=lambda each: each[0])
def test_a_table_of_the_fused_network_gives_its_program(samples: list[str], folder: Path) -> None:
    given = [samples[0], str(folder / samples[1]), *SAID]
    table, model = str(folder / "net.table"), folder / "by_table.bmodel"
    assert called(folder, "bmnet-calibrate", *given, "-o", table) == 0
    assert max(load_table(table).thresholds.values()) > 200  # of bytes
    common = ["--target", "bm1880", "--quantize", "int8", "--quiet"]
    assert called(folder, "bmnet-compile", "--calibration-table", table, *SAID, *common, "-o", str(model)) == 0
    taken = load(model).stages()[0].inputs[0]
    assert (taken.dtype, taken.shape) == ("uint8", (1, 16, 24, 3))


def test_accuracy_is_that_of_the_fused_network(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for given in (["--images", str(folder / "photos")], ["--data", str(folder / "pixels.npy")]):
        assert called(folder, "bmnet-accuracy", *given, *SAID, "--target", "bm1684x") == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] and "image.scale" not in texts[0]
    row = next(line for line in texts[0].splitlines() if line.startswith("out "))
    assert float(row.split()[1].rstrip("%")) < 5


@pytest.mark.parametrize("command", ["bmnet-calibrate", "bmnet-accuracy"])
def test_what_is_said_of_pictures_needs_some_or_bytes(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["-o", str(folder / "x.table")] if command == "bmnet-calibrate" else ["--target", "bm1880"]
    assert called(folder, command, "--data", str(folder / "pixels.npy"), *SAID[:4], *more) == 2
    assert "--mean is about images, but there is no --images" in capsys.readouterr().err
