"""Pages for people as programs: their shell and Python blocks in order, in a folder with the files they speak of.

A block behind a line `<!-- not run: REASON -->` is left out, and so is Python that begins with the name of a file: it
is an excerpt. Everything else runs as one bash process per page; Python blocks that follow each other are one program.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from fetched import third_party

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n)?```(?P<language>sh|python)\n(?P<code>.*?)^```", re.M | re.S
)
_EXCERPT = re.compile(r"# \S+\.py\n")
_SEPARATE = {
    "PIP_NO_DEPS": "1",
    "PIP_NO_BUILD_ISOLATION": "0",  # pip takes the value as that of --build-isolation
    "PIP_NO_INDEX": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class Block(NamedTuple):
    """A block of a page; `reason` where it is not run."""

    language: str
    code: str
    reason: str | None


def blocks(page: Path) -> list[Block]:
    """Shell and Python blocks of a page, excerpts of files left out."""
    found = (Block(*each.group("language", "code", "reason")) for each in _BLOCK.finditer(page.read_text("utf-8")))
    return [each for each in found if each.language == "sh" or not _EXCERPT.match(each.code)]


def script(page: Path) -> str:
    """What bash has to do."""
    parts = []
    for language, together in groupby((each for each in blocks(page) if not each.reason), lambda each: each.language):
        code = "\n".join(each.code for each in together)
        parts.append(code if language == "sh" else f"python - <<'END_OF_PYTHON'\n{code}END_OF_PYTHON\n")
    return "set -x\n" + "\n".join(parts)


def run_page(page: Path, folder: Path, files: Callable[[Path], None]) -> str:
    """Run a page in a folder; gives what it printed, and fails with it. pip installs beside, without the network."""
    shutil.copytree(
        ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    )
    (folder / "models").symlink_to(ROOT / "models")
    files(folder)
    site = str(folder / "site")
    settings = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": site,
        "PIP_TARGET": site,
    }
    done = subprocess.run(
        ["bash", "-e", "-c", script(page)],
        cwd=folder,
        env={**os.environ, **_SEPARATE, **settings},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def digit_files(folder: Path) -> None:
    """LeNet, ResNet-8 with input `data` and output `prob`, digits for calibration and tests, as arrays and images."""
    models = ROOT / "models"
    shutil.copy(models / "lenet" / "deploy.prototxt", folder)
    shutil.copy(models / "lenet" / "lenet.caffemodel", folder / "net.caffemodel")
    net = onnx.load(models / "resnet8" / "resnet8_mnist.onnx")
    (inner,), (outer,) = net.graph.input, net.graph.output
    renamed = {inner.name: "data", outer.name: "prob"}
    for names in (names for node in net.graph.node for names in (node.input, node.output)):
        names[:] = [renamed.get(name, name) for name in names]
    inner.name, outer.name = "data", "prob"
    onnx.save(net, folder / "net.onnx")
    digits = np.load(models / "digits.npz")
    shutil.copy(models / "digits.npz", folder)
    for name, pixels in (("calib", digits["calib"]), ("test", digits["test"][:64]), ("images", digits["test"][:4])):
        np.savez(folder / f"{name}.npz", data=pixels.astype(np.float32) / 255)
    np.save(folder / "labels.npy", digits["labels"][:64])
    _digit_images(folder, digits["test"][:16, 0], digits["labels"])


def _digit_images(folder: Path, pixels: np.ndarray, labels: np.ndarray) -> None:
    from PIL import Image

    (folder / "val").mkdir()
    for number, each in enumerate(pixels):
        Image.fromarray(each).save(folder / "val" / f"{number:02}.png")
    lines = (f"{number:02}.png {label}\n" for number, label in enumerate(labels[: len(pixels)]))
    (folder / "val.txt").write_text("".join(lines))


def photo_files(folder: Path) -> None:
    """Photos, and SqueezeNet in the place of the larger network that the page speaks of."""
    from PIL import Image

    astronaut = Image.open(third_party("astronaut.png")).convert("RGB")
    (folder / "photos").mkdir()
    for number in range(4):
        astronaut.crop((20 * number, 10 * number, 400 + 20 * number, 300)).save(folder / "photos" / f"{number}.png")
    astronaut.crop((100, 0, 400, 300)).save(folder / "holiday.jpg")
    (folder / "resnet.onnx").symlink_to(third_party("light_squeezenet.onnx"))
