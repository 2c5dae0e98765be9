"""Compile and run whole networks for BM1880: python benchmarks/bench_networks.py [NAMES...]

Prints per network: seconds to compile (with calibration), seconds per run in the command simulator after loading, and
the ratio of that to one float32 run in ONNX Runtime on one thread beside it (Caffe nets: no ratio). Third-party
networks must be fetched first (`make models`).
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from stopwatch import best

import bmcompiler
from bmcompiler.runtime import Session

MODELS = Path(__file__).resolve().parent.parent / "models"
THIRD_PARTY = MODELS / "third_party"


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def digits() -> np.ndarray:
    return np.asarray(np.load(MODELS / "digits.npz")["calib"], np.float32) / 255


NETS: dict[str, tuple[Path, Path | None, Callable[[], np.ndarray]]] = {
    "lenet": (MODELS / "lenet/deploy.prototxt", MODELS / "lenet/lenet.caffemodel", digits),
    "resnet8": (MODELS / "resnet8/resnet8_mnist.onnx", None, digits),
    "mtcnn_onet": (THIRD_PARTY / "mtcnn_onet.onnx", None, lambda: noise(32, 48, 48, 3)),
    "light_squeezenet": (THIRD_PARTY / "light_squeezenet.onnx", None, lambda: noise(4, 3, 224, 224)),
    "light_resnet50": (THIRD_PARTY / "light_resnet50.onnx", None, lambda: noise(4, 3, 224, 224)),
}


def reference(model: Path, samples: np.ndarray) -> float | None:
    """Seconds of one float run in ONNX Runtime, None without it or for other formats."""
    if model.suffix != ".onnx":
        return None
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: samples[:1]}
    return best(lambda: session.run(None, feed))


def bench(name: str) -> None:
    model, weights, data = NETS[name]
    if not model.exists():
        print(f"{name:18} not fetched (make models)")
        return
    samples = data()
    shape = [[1, *samples.shape[1:]]]
    module = bmcompiler.load_network(model, weights, shapes=shape)
    (source,) = module.main.input_names
    start = time.perf_counter()
    result = bmcompiler.compile(model, weights, target="bm1880", data={source: samples}, shapes=[shape])
    compile_time = time.perf_counter() - start
    session = Session(result.model)
    run_time = best(lambda: session.run({source: samples[:1]}))
    other = reference(model, samples)
    ratio = "" if other is None else f"{run_time / other:8.1f} x ONNX Runtime"
    macs = sum(row.macs for row in result.rows) / 1e6
    commands = sum(row.commands for row in result.rows)
    facts = f"{name:18} {macs:8.1f} MMAC {commands:6} commands"
    print(f"{facts}  compile {compile_time:6.2f} s  run {run_time:7.4f} s {ratio}")


def main(names: list[str]) -> None:
    compiler = Path(sysconfig.get_path("scripts")) / "bmnet-compile"
    if compiler.exists():
        seconds = best(lambda: subprocess.run([compiler, "--help"], capture_output=True, check=True))
        print(f"bmnet-compile --help: {seconds:.2f} s")
    for name in names or list(NETS):
        bench(name)


if __name__ == "__main__":
    main(sys.argv[1:])
