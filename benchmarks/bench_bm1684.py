"""ResNet-50 (seeded weights) on BM1684: python benchmarks/bench_bm1684.py [NAMES of light networks...]

Runs the commands as a user would and prints their seconds: calibration with 8 images, compilation in f32, in int8 with
the choice of modes on the samples, in int8 from the two tables; then per image in the simulator: int8, exact f32, fast
f32 (sums in BLAS order). The networks are written by `python models/light.py NAMES`.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bmcompiler.runtime import Session

THIRD_PARTY = Path(__file__).resolve().parent.parent / "models" / "third_party"
SCRIPTS = Path(sysconfig.get_path("scripts"))
IMAGES = 8
SOURCES = {"resnet50": "gpu_0/data_0", "squeezenet": "data_0", "inception_v1": "data_0", "densenet121": "data_0"}


def timed(what: str, function: Callable[[], object]) -> None:
    start = time.perf_counter()
    function()
    print(f"  {what:48} {time.perf_counter() - start:6.2f} s")


def command(name: str, *arguments: object) -> Callable[[], object]:
    return lambda: subprocess.run([SCRIPTS / name, *map(str, arguments)], check=True, capture_output=True)


def bench(name: str) -> None:
    model = THIRD_PARTY / f"light_{name}.onnx"
    if not model.exists():
        print(f"{name}: not there (python models/light.py {name})")
        return
    print(name)
    samples = np.random.default_rng(0).standard_normal((IMAGES, 3, 224, 224)).astype(np.float32)
    source = SOURCES[name]
    with tempfile.TemporaryDirectory() as folder:
        data, table, modes, f32, int8 = (
            Path(folder) / n for n in ("c.npz", "t.table", "m.table", "f.bmodel", "i.bmodel")
        )
        np.savez(data, **{source: samples})
        compile_to = ("bmnet-compile", model, "--target", "bm1684", "--quiet")
        timed(
            f"bmnet-calibrate, {IMAGES} images, mse",
            command("bmnet-calibrate", model, "--data", data, "--method", "mse", "-o", table),
        )
        timed("bmnet-compile f32", command(*compile_to, "-o", f32))
        timed(
            f"bmnet-compile int8, calibration and modes, {IMAGES} images",
            command(*compile_to, "--quantize", "int8", "--data", data, "--quant-table", modes, "-o", int8),
        )
        timed(
            "bmnet-compile int8 from tables",
            command(
                *compile_to, "--quantize", "int8", "--calibration-table", table, "--quant-table", modes, "-o", int8
            ),
        )
        for what, path, fast in (("int8", int8, False), ("f32", f32, False), ("f32 --fast", f32, True)):
            session = Session(path, fast=fast)
            session.run({source: samples[:1]})
            timed(f"one image in the simulator, {what}", lambda run=session.run: run({source: samples[:1]}))


if __name__ == "__main__":
    for each in sys.argv[1:] or ["resnet50"]:
        bench(each)
