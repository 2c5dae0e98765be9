"""Networks that are compiled at several levels and must not differ in more than time and memory.

What comes before the levels, reading, calibration and quantization, is done once in a run of the tests and kept as IR.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import numpy as np
from fetched import third_party

import bmcompiler
from bmcompiler.driver import load_network
from bmcompiler.files.mlir import load_module, save_module, side_file
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.pipelines import LEVELS
from bmcompiler.quant.table import load_table, save_table
from bmcompiler.result import Result
from bmcompiler.runtime import Session
from bmcompiler.target import find_target

MODELS = Path(__file__).resolve().parent.parent / "models"
SHAPES: dict[str, tuple[int, ...]] = {
    name: tuple(shape) for name, shape in json.loads((MODELS / "shapes.json").read_text(encoding="utf-8")).items()
}
"""One sample of the input of every network."""
OURS = {"lenet": "lenet/deploy.prototxt", "resnet8": "resnet8/resnet8_mnist.onnx"}
WEIGHTS = {"lenet": MODELS / "lenet/lenet.caffemodel"}
SEEDED = ("mobilenetv2_160", "centerface_480")
QUICK = ("lenet", "resnet8")
SMALL = ("mtcnn_pnet", "mtcnn_rnet", "mtcnn_onet", "ppocr_v2_cls")
"""Networks that compile in a second or two; the others take more."""
_PADDING = 64 * 32
"""Bytes that alignment may add: the bound knows none, which shows where a whole net takes a few thousand bytes."""
MODES = (
    ("bm1684", "f32"),
    ("bm1684", "int8"),
    ("bm1684x", "f32"),
    ("bm1684x", "f16"),
    ("bm1684x", "int8"),
    ("bm1880", "int8"),
)
"""Targets with levels, and how they compute."""


def files_of(name: str, folder: Path) -> tuple[Path, Path | None]:
    """Model and weights; seeded ones are written to `folder`, and without a fetched one the test is skipped."""
    if name in OURS:
        return MODELS / OURS[name], WEIGHTS.get(name)
    if name in SEEDED:
        return seeded(name, folder), None
    if name == "res10_ssd_face":
        return third_party(f"{name}.prototxt"), third_party(f"{name}.caffemodel")
    return third_party(f"{name}.onnx"), None


def seeded(name: str, folder: Path) -> Path:
    """A network of models/seeded.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("seeded", MODELS / "seeded.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path: Path = module.seeded_model(name, folder)
    return path


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """One process at a time, of all that run these tests."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def shared_passes(target: str, precision: str) -> list[str]:
    """The passes with which the pipelines of all levels begin."""
    at_levels = zip(*(find_target(target).pipeline(precision, level).split(",") for level in LEVELS))
    return [same[0] for same in takewhile(lambda passes: len(set(passes)) == 1, at_levels)]


def passes_of_level(target: str, precision: str, level: int) -> str:
    """The passes of a level that come after those of all levels."""
    passes = find_target(target).pipeline(precision, level).split(",")
    return ",".join(passes[len(shared_passes(target, precision)) :]) or "dead-code"


class Network:
    """A network for a chip; in int8 with thresholds of noise, the same for all chips, and the cheapest modes.

    `folder` is the fixture `shared`.
    """

    def __init__(self, name: str, target: str, precision: str, folder: Path, batch: int = 1) -> None:
        self.target, self.precision = target, precision
        self.files, shape = files_of(name, folder), [batch, *SHAPES[name]]
        self.path = folder / f"{name}-{target}-{precision}-{batch}.mlir"
        table = folder / f"{name}.table" if precision == "int8" else None
        if table is not None:
            with alone(folder / f"{name}.table.lock"):
                if not table.exists():
                    self._calibrate(table, [1, *SHAPES[name]])
        with alone(self.path.with_suffix(".lock")):
            if not self.path.exists():
                self._lower(shape, table)
        self.module = load_module(self.path)
        self.input, self.shape = self.module.main.input_names[0], shape
        self.images = {self.input: noise(shape)[:batch]}

    def _calibrate(self, table: Path, shape: list[int]) -> None:
        module = load_network(*self.files, shapes=[shape])
        ctx = PassContext(data={module.main.input_names[0]: noise(shape)})
        run_pipeline(module, "canonicalize,calibrate", ctx)
        assert ctx.table is not None
        save_table(ctx.table, table)

    def _lower(self, shape: list[int], table: Path | None) -> None:
        """Run the passes of all levels."""
        module, target = load_network(*self.files, shapes=[shape]), find_target(self.target)
        ctx = PassContext(target=target, table=None if table is None else load_table(table))
        run_pipeline(module, ",".join(shared_passes(self.target, self.precision)), ctx)
        unfinished = self.path.with_name(f"unfinished-{self.path.name}")
        save_module(module, unfinished)
        if side_file(unfinished).exists():
            side_file(unfinished).rename(side_file(self.path))
        unfinished.rename(self.path)

    def at(self, level: int, pipeline: str | None = None) -> Result:
        """Compiled at a level, with its own passes or the given ones."""
        passes = passes_of_level(self.target, self.precision, level) if pipeline is None else pipeline
        return bmcompiler.compile_module(self.module, target=self.target, pipeline=passes, opt=level)

    def outputs(self, session: Session) -> dict[str, bytes]:
        """Outputs of the noise, by name."""
        return {name: array.tobytes() for name, array in session.run(self.images).items()}


def assert_memory_is_close_to_what_is_alive_at_once(totals: dict[str, int], level: int) -> None:
    """Neuron memory is at most a tenth more, or little."""
    size, bound = totals["neuron memory"], totals["neuron lower bound"]
    assert bound <= size <= max(1.1 * bound, bound + _PADDING), f"level {level}: {size} bytes, at least {bound}"


def noise(shape: list[int]) -> np.ndarray:
    """Two images, or as many as the shape has."""
    return np.random.default_rng(0).standard_normal((max(shape[0], 2), *shape[1:]), np.float32)
