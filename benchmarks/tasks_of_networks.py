"""The networks that `accuracy.py` scores: files, calibration samples, task, and what ONNX Runtime makes of them.

Tasks of the third-party networks stand in `tasks.py` of the shared models folder, beside their description; the two
digit networks of this repository are scored the same way. Samples and reference outputs are kept in a folder.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "models"
THIRD_PARTY = MODELS / "third_party"
TASKS = Path(os.environ.get("TASKS", ROOT.parent / "shared" / "models" / "tasks.py"))
"""The variable TASKS names another place."""
KEPT = ROOT / "build" / "accuracy"

Array = NDArray[Any]
Run = Callable[[Array], Sequence[Array]]
"""One sample with its batch axis -> outputs in the order of the graph."""


@dataclass(frozen=True)
class Network:
    """files: as `bmnet-compile` takes them. shape: of the one input, batch 1.

    calibration: samples on axis 0. metric: scores a `Run`, 0..1; it asks for the same samples each time.
    """

    name: str
    files: tuple[Path, ...]
    input: str
    shape: tuple[int, ...]
    calibration: Callable[[int], Array]
    metric: Callable[[Run], float]

    @property
    def there(self) -> bool:
        """Whether its files have been fetched."""
        return all(path.exists() for path in self.files)


@cache
def _tasks() -> ModuleType | None:
    """The module of tasks; None where this checkout has none beside it."""
    if not TASKS.exists():
        return None
    spec = importlib.util.spec_from_file_location("tasks", TASKS)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_FILES = {"res10_ssd_face": ("res10_ssd_face.prototxt", "res10_ssd_face.caffemodel")}
_DIGITS = {
    "lenet": (MODELS / "lenet/deploy.prototxt", MODELS / "lenet/lenet.caffemodel"),
    "resnet8": (MODELS / "resnet8/resnet8_mnist.onnx",),
}


def networks() -> dict[str, Network]:
    """All networks by name; those of `tasks.py` only where it is there."""
    found = {name: _digits(name, files) for name, files in _DIGITS.items()}
    tasks = _tasks()
    if tasks is not None:
        for name, net in tasks.NETWORKS.items():
            files = tuple(THIRD_PARTY / file for file in _FILES.get(name, (f"{name}.onnx",)))
            found[name] = _task(tasks, name, files, net)
    return found


def _task(tasks: ModuleType, name: str, files: tuple[Path, ...], net: Any) -> Network:
    def calibration(count: int) -> Array:
        samples: Array = tasks.calibration(name, count)[net.input]
        return samples

    def metric(run: Run) -> float:
        return float(tasks.score(tasks.metric(name, run)))

    return Network(name, files, net.input, net.shape, calibration, metric)


def _digits(name: str, files: tuple[Path, ...]) -> Network:
    stored = np.load(MODELS / "digits.npz")
    samples, tested = (stored[key].astype(np.float32) / 255 for key in ("calib", "test"))

    def metric(run: Run) -> float:
        right = [run(tested[k : k + 1])[0].reshape(-1).argmax() == label for k, label in enumerate(stored["labels"])]
        return float(np.mean(right))

    return Network(name, files, "data" if name == "lenet" else "x", (1, 1, 28, 28), lambda n: samples[:n], metric)


def calibration(net: Network, count: int) -> dict[str, Array]:
    """Calibration samples by input name, made once."""
    path = KEPT / f"{net.name}.{count}.npy"
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        np.save(path, net.calibration(count))
    return {net.input: np.load(path)}


def reference(net: Network, count: int) -> Mapping[str, float | None]:
    """Scores of "float" and of "int8", ONNX Runtime's static form with scales per channel; Caffe files by OpenCV.

    Computed once per count of calibration samples.
    """
    path = KEPT / f"{net.name}.{count}.json"
    if not path.exists():
        calibration(net, count)
        path.write_text(json.dumps(_scores(net, count)))
    found: dict[str, float | None] = json.loads(path.read_text())
    return found


def _scores(net: Network, count: int) -> dict[str, float | None]:
    tasks = _tasks()
    if tasks is None:
        return {"float": None, "int8": None}
    if net.files[0].suffix != ".onnx":
        return {"float": net.metric(tasks.caffe_run(*map(str, net.files))), "int8": None}
    model = tasks.fixed(str(net.files[0]), net.shape)
    exact = net.metric(tasks.onnx_run(model))
    return {"float": exact, "int8": net.metric(tasks.onnx_run(tasks.int8(model, calibration(net, count))))}
