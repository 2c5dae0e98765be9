"""Pages for people as programs: their shell and Python blocks in order, in a folder with the files they speak of.

A block behind a line `<!-- not run: REASON -->` is left out, and so is Python that begins with the name of a file: it
is an excerpt. Everything else runs as one bash process per page; Python blocks that follow each other are one program.
The folder has what the page's own function puts there, and of the checkout only what blocks name below examples/ and
models/: a block that needs more of it (make, tools/, tests/) fails, unless the page says why it is not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from fetched import THIRD_PARTY, third_party

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n)?```(?P<language>sh|python)\n(?P<code>.*?)^```", re.M | re.S
)
_EXCERPT = re.compile(r"# \S+\.py\n")
_FILE = re.compile(r"\b(?:examples|models)/[\w./-]*\w")
_FROM_INDEX = re.compile(r"^pip install \w+$", re.M)
_SEPARATE = {
    "PIP_NO_DEPS": "1",
    "PIP_NO_BUILD_ISOLATION": "0",  # pip takes the value as that of --build-isolation
    "PIP_NO_INDEX": "1",
}


class Block(NamedTuple):
    """A block of a page: `line` is the first of its code, `reason` says why it is not run."""

    language: str
    code: str
    reason: str | None
    line: int


def blocks(page: Path) -> list[Block]:
    """Shell and Python blocks of a page, excerpts of files left out."""
    text = page.read_text("utf-8")
    found = (
        Block(*each.group("language", "code", "reason"), text.count("\n", 0, each.start("code")) + 1)
        for each in _BLOCK.finditer(text)
    )
    return [each for each in found if each.language == "sh" or not _EXCERPT.match(each.code)]


def script(page: Path) -> str:
    """What bash has to do; a page that fails says last which block did."""
    name = os.path.relpath(page, ROOT)
    parts = [f"trap '[ $? = 0 ] || echo \"{name}: the block at line $LINE failed\" >&2' EXIT", "set -x"]
    for language, group in groupby((each for each in blocks(page) if not each.reason), lambda each: each.language):
        if language == "sh":
            parts += [f"LINE={each.line}\n{each.code}" for each in group]
        else:
            together = list(group)
            parts.append(f"LINE={together[0].line}\npython - <<'END_OF_PYTHON'\n{_program(together)}END_OF_PYTHON\n")
    return "\n".join(parts)


def _program(together: Iterable[Block]) -> str:
    """Python blocks as one program, on the lines that they have in the page: so tracebacks name them."""
    code = ""
    for each in together:
        code += "\n" * (each.line - 1 - code.count("\n")) + each.code
    return code


def run_page(page: Path, folder: Path, files: Callable[[Path], None], python: Path | None = None) -> str:
    """Run a page in a folder; gives what it printed, and fails with that and the block's page and line.

    `python` is that of an environment in which a user would be: there pip does what it does. Without, the page runs in
    the environment of the tests: pip installs beside it, without the network, and only what the folder has.
    """
    commands = script(page)
    for name in _FILE.findall(commands):
        copy_file(name, folder)
    files(folder)
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment["PATH"] = os.pathsep.join([str((python or Path(sys.executable)).parent), os.environ["PATH"]])
    if python:
        environment.pop("PYTHONPATH", None)
    else:
        commands = _FROM_INDEX.sub(":", commands)
        site = str(folder / "site")
        environment.update(_SEPARATE, PYTHONPATH=site, PIP_TARGET=site)
    done = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy_file(name: str, folder: Path) -> None:
    """Copy a file or folder of the checkout to the same place below a folder."""
    source, target = ROOT / name, folder / name
    if source.parent == THIRD_PARTY:
        third_party(source.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        left_out = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
        shutil.copytree(source, target, ignore=left_out, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


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
