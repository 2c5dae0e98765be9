"""Accuracy on all chips against float32: python benchmarks/accuracy.py [bm1880|bm1684|dv700] [NAMES...]

In int8 on the BM1880 and BM1684, on the DV700 in fp16 and with weights of 8 bits (--quantize int8).

Each network is compiled with `bmnet-compile` and run on its test samples with `bmnet-run`, as a user would; float32 is
the interpreter on the network as imported. Third-party networks and photos must be fetched first (`make models`).
"""

from __future__ import annotations

import argparse
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bmcompiler
from bmcompiler.interpreter import run_module

MODELS = Path(__file__).resolve().parent.parent / "models"
THIRD_PARTY = MODELS / "third_party"


@dataclass(frozen=True)
class Data:
    """Samples on axis 0; `labels` of the test samples."""

    calibration: np.ndarray
    test: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Net:
    files: tuple[Path, ...]
    data: Callable[[], Data]


def digits() -> Data:
    stored = np.load(MODELS / "digits.npz")
    calibration, test = (stored[key].astype(np.float32) / 255 for key in ("calib", "test"))
    return Data(calibration, test, stored["labels"])


def faces(size: int) -> Callable[[], Data]:
    """100 patches with faces and 100 without, as the MTCNN nets take them: N, W, H, 3, -1 to 1."""

    def load() -> Data:
        import cv2

        gray = np.load(THIRD_PARTY / "lfw_subset.npy").astype(np.float32)
        resized = np.stack([cv2.resize(patch, (size, size), interpolation=cv2.INTER_LINEAR) for patch in gray])
        scaled = ((resized * 255 - 127.5) / 128).transpose(0, 2, 1)
        patches = np.repeat(scaled[..., None], 3, axis=3).astype(np.float32)
        return Data(patches[::2], patches, np.repeat([1, 0], 100))

    return load


TARGETS = {"bm1880": ("int8",), "bm1684": ("int8",), "dv700": ("f16", "int8")}
"""Precisions that are measured."""
NETS = {
    "lenet": Net((MODELS / "lenet/deploy.prototxt", MODELS / "lenet/lenet.caffemodel"), digits),
    "resnet8": Net((MODELS / "resnet8/resnet8_mnist.onnx",), digits),
    "mtcnn_pnet": Net((THIRD_PARTY / "mtcnn_pnet.onnx",), faces(12)),
    "mtcnn_rnet": Net((THIRD_PARTY / "mtcnn_rnet.onnx",), faces(24)),
    "mtcnn_onet": Net((THIRD_PARTY / "mtcnn_onet.onnx",), faces(48)),
}


def accuracy(outputs: dict[str, np.ndarray], data: Data) -> float:
    """Share of samples whose largest class score is the label's; class scores are the output with as many classes."""
    classes = int(data.labels.max()) + 1
    (scores,) = (array for array in outputs.values() if array.size == len(data.labels) * classes)
    return float((scores.reshape(-1, classes).argmax(axis=1) == data.labels).mean())


def command(name: str, *arguments: object) -> None:
    program = Path(sysconfig.get_path("scripts")) / name
    subprocess.run([str(word) for word in (program, *arguments)], check=True, stdout=subprocess.DEVNULL)


def measure(name: str, net: Net, folder: Path, target: str, precision: str) -> None:
    if not all(path.exists() for path in net.files):
        print(f"{name:12} not fetched (make models)")
        return
    data = net.data()
    one = [[1, *data.test.shape[1:]]]
    module = bmcompiler.load_network(*net.files, shapes=[data.test.shape])
    (source,) = module.main.input_names
    exact = accuracy(run_module(module, {source: data.test}), data)
    calibration, samples, model, results = (folder / f for f in ("calib.npz", "in.npz", "net.bmodel", "out.npz"))
    np.savez(calibration, **{source: data.calibration})
    np.savez(samples, **{source: data.test})
    start = time.perf_counter()
    options: list[object] = ["--target", target, "--quantize", precision, "--shapes", one, "-o", model]
    if target != "dv700":
        options += ["--data", calibration]
    command("bmnet-compile", *net.files, *options)
    seconds = time.perf_counter() - start
    command("bmnet-run", model, "--input", samples, "-o", results)
    found = accuracy(dict(np.load(results)), data)
    print(f"{name:12} float32 {exact:.3f}  {target} {precision} {found:.3f}  bmnet-compile {seconds:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", nargs="*", choices=[*TARGETS, *NETS, []], metavar="CHIP|NET", help="default: all")
    given = parser.parse_args().what
    targets = [a for a in given if a in TARGETS] or list(TARGETS)
    names = [a for a in given if a in NETS] or list(NETS)
    with tempfile.TemporaryDirectory() as folder:
        for target in targets:
            for precision in TARGETS[target]:
                for name in names:
                    measure(name, NETS[name], Path(folder), target, precision)


if __name__ == "__main__":
    main()
