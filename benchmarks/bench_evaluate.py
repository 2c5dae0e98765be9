"""Float execution in the interpreter against ONNX Runtime: python benchmarks/bench_evaluate.py [NAMES...]

Both run on as many threads as BLAS uses (OPENBLAS_NUM_THREADS; by default every core). Networks as imported, without
any pass: names are files of models/third_party without ".onnx".
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime
from stopwatch import best

from bmcompiler.driver import load_network
from bmcompiler.interpreter import run_module

THIRD_PARTY = Path(__file__).resolve().parent.parent / "models" / "third_party"
THREADS = 2
SHAPES = {"ppocr_v2_cls": [1, 3, 48, 192], "ppocr_v4_det": [1, 3, 320, 320], "ppocr_v4_rec": [1, 3, 48, 320]}


def bench(name: str) -> float:
    """Ratio of our time to ONNX Runtime's."""
    path = THIRD_PARTY / f"{name}.onnx"
    shape = SHAPES.get(name, [1, 3, 224, 224])
    module = load_network(path, shapes=[shape])
    feed = {module.main.input_names[0]: np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = THREADS, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    ours, theirs = best(lambda: run_module(module, feed)), best(lambda: session.run(None, feed))
    print(f"{name:20} {ours * 1e3:8.1f} ms  ONNX Runtime {theirs * 1e3:8.1f} ms  ratio {ours / theirs:5.2f}")
    return ours / theirs


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ["light_resnet50"]:
        bench(wanted)
