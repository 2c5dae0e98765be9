"""Speed of the exact integer convolution and of whole models on the BM1880 simulator.

    python benchmarks/bench_simulator.py [MODEL.bmodel ...]

Every figure stands beside a reference run on the same machine at the same moment: a plain float32 BLAS product with the
same number of multiply-accumulates, on one core.
"""

from __future__ import annotations

import sys

import numpy as np
from stopwatch import best

from bmcompiler.backends.bm1880.cmdbuf import records
from bmcompiler.backends.bm1880.isa import TIU, Engine, Task, WindowOp
from bmcompiler.bmodel import load
from bmcompiler.bmodel.bm1880 import Bm1880Model
from bmcompiler.errors import BMError
from bmcompiler.numeric import arith
from bmcompiler.numeric.blas import one_blas_thread
from bmcompiler.runtime.session import Session

# (input channels, output channels, height = width, kernel)
CONVOLUTIONS = [(64, 64, 56, 3), (3, 64, 224, 3), (512, 512, 14, 3), (64, 256, 56, 1), (16, 16, 12, 3)]


def reference_seconds(macs: int) -> float:
    """Time of a float32 product of that many multiply-accumulates, measured on one of at most 2**28."""
    size = min(macs, 1 << 28)
    depth, rows = 512, 256
    columns = max(1, size // (depth * rows))
    a, b = np.ones((rows, depth), np.float32), np.ones((depth, columns), np.float32)
    with one_blas_thread:
        return best(lambda: a @ b) * macs / (rows * depth * columns)


def report(name: str, seconds: float, macs: int) -> None:
    """One line: time, rate, and the ratio to the reference."""
    ratio = seconds / reference_seconds(macs)
    print(f"{name:44s} {seconds * 1e3:9.2f} ms {macs / seconds / 1e9:7.2f} GMAC/s {ratio:7.1f} x reference")


def bench_convolutions() -> None:
    """Exact int8 convolutions."""
    rng = np.random.default_rng(0)
    for ic, oc, size, kernel in CONVOLUTIONS:
        x = rng.integers(-128, 128, (1, ic, size, size), dtype=np.int8)
        w = rng.integers(-128, 128, (oc, ic, kernel, kernel), dtype=np.int8)
        pads = (kernel // 2,) * 4
        seconds = best(lambda x=x, w=w, pads=pads: arith.conv2d(x, w, pads=pads))  # type: ignore[misc]
        macs = ic * oc * size * size * kernel * kernel
        report(f"conv2d {ic}->{oc} {kernel}x{kernel} at {size}x{size}", seconds, macs)


def count_macs(cmdbuf: bytes) -> int:
    """Multiply-accumulates of the convolutions and matrix products of a command buffer."""
    f = TIU.decode(records(cmdbuf).payloads(Engine.TPU))
    results = f["res0_n"] * f["res0_c"] * f["res0_h"] * f["res0_w"]
    window = f["opd1_h"] * f["opd1_w"]
    convolution = (f["tsk_typ"] == Task.CONV) * results * f["opd1_n"] * window
    depthwise = (f["tsk_typ"] == Task.WINDOW) * (f["tsk_eu_typ"] == WindowOp.DEPTHWISE) * results * window
    matrix = (f["tsk_typ"] == Task.MATRIX_MAC) * results * f["opd1_n"]
    return int((convolution + depthwise + matrix).sum())


def bench_model(path: str) -> None:
    """First run (decodes the commands) and later runs of every program of a model."""
    model = load(path)
    if not isinstance(model, Bm1880Model):
        raise BMError("not a BM1880 model", file=path)
    rng = np.random.default_rng(0)
    for index, command in enumerate(model.commands):
        session = Session(model.select(index))
        inputs = {i.name: rng.integers(0, 100, i.shape, dtype=np.uint8) for i in session.inputs}
        first = best(lambda: session.run(inputs, raw=True), 1)  # noqa: B023
        seconds = best(lambda: session.run(inputs, raw=True))  # noqa: B023
        macs = count_macs(command.cmdbuf)
        shape = "x".join(str(size) for size in command.inputs[0].shape)
        report(f"{model.net_name} {shape}, {len(records(command.cmdbuf))} commands", seconds, max(macs, 1))
        print(f"{'':44s} {first * 1e3:9.2f} ms first run")


def main(paths: list[str]) -> int:
    """Convolutions, then the models given."""
    bench_convolutions()
    try:
        for path in paths:
            bench_model(path)
    except (BMError, OSError) as error:
        print(f"bench_simulator: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
