"""Speed of the BM1684X simulator's matrix unit: python benchmarks/bench_bm1684x.py

CPU time of single convolution commands against numpy's sgemm of the same product, with OPENBLAS_NUM_THREADS=1, and of
all sums of ResNet-50 in fp16, for which the vendor's model takes 270 CPU seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import ITEM_BYTES, Precision
from bmcompiler.backends.bm1684x.isa import CONV
from bmcompiler.bmodel.bm168x import CommandGroup
from bmcompiler.chip import align_up
from bmcompiler.numeric.fused import fused_product
from bmcompiler.numeric.halves import FP16
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan
from bmcompiler.runtime.simulator.bm1684x.cube.conv import group_sizes

SHAPES = ((64, 64, 56, 3), (128, 128, 28, 3), (256, 128, 28, 1), (256, 256, 14, 3), (512, 512, 7, 3), (64, 256, 28, 1))
"""(input channels, output channels, rows and columns, window)"""
STAGES = ((64, 64, 256, 56, 3), (256, 128, 512, 28, 4), (512, 256, 1024, 14, 6), (1024, 512, 2048, 7, 3))
"""Of ResNet-50: channels before, within and after, rows and columns, blocks."""


def seconds(run: Callable[[], object], times: int = 5) -> float:
    """The least CPU seconds of some runs."""
    found = []
    for _ in range(times):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def convolution(precision: Precision, shape: tuple[int, int, int, int], fast: bool) -> Callable[[], None]:
    """One command on ordinary numbers."""
    inputs, outputs, size, window = shape
    item, group = ITEM_BYTES[precision], {Precision.INT8: 64, Precision.FP16: 32}.get(precision, 1)
    result = Precision.INT32 if precision == Precision.INT8 else precision
    weights = -(-inputs // CHIP.lanes) * align_up(size * size * item, CHIP.alignment)
    row = align_up(inputs, group) * window * window * item
    target = weights + align_up(-(-outputs // CHIP.lanes) * row, CHIP.alignment)
    memories, rng = Memories(), np.random.default_rng(0)
    if precision == Precision.INT8:
        memories.local.bytes[...] = rng.integers(0, 256, memories.local.bytes.shape, np.uint8)
    else:
        dtype = np.float16 if precision == Precision.FP16 else np.float32
        numbers = rng.standard_normal((CHIP.lanes, CHIP.lmem_size // item)).astype(dtype)
        memories.local.bytes[...] = numbers.view(np.uint8)
    pads = {f"opd0_{side}_pad": window // 2 for side in ("up", "dn", "lf", "rt")}
    sizes = {"res0_n": 1, "res0_c": outputs, "opd0_c": inputs}
    sizes |= {f"{name}_{axis}": size for name in ("res0", "opd0") for axis in "hw"} | {
        "opd1_h": window,
        "opd1_w": window,
    }
    command = CONV.pack(
        {
            **{"cmd_id": 1, "opd0_sign": 1, "opd1_sign": 1, "opd2_const": 1, "opd3_const": 1},
            **{"res0_prec": result, "opd0_prec": precision, "res_op_x_str": 1, "res_op_y_str": 1},
            **{"res0_addr": target, "opd1_addr": weights},
            **pads,
            **sizes,
        }
    )
    return compile_plan([CommandGroup(command, b"")], memories, fast=fast).run


def sgemm(shape: tuple[int, int, int, int]) -> Callable[[], object]:
    """The same product by numpy."""
    inputs, outputs, size, window = shape
    rng = np.random.default_rng(0)
    a = rng.standard_normal((outputs, inputs * window * window)).astype(np.float32)
    b = rng.standard_normal((inputs * window * window, size * size)).astype(np.float32)
    return lambda: a @ b


def resnet50() -> tuple[int, float]:
    """(Multiply-accumulates, CPU seconds) of the fp16 sums of all convolutions."""
    layers = [(3, 64, 112, 7, 1)]
    for before, within, after, size, blocks in STAGES:
        layers += [(before, after, size, 1, 1), (before, within, size, 1, 1), (within, within, size, 3, blocks)]
        layers += [(within, after, size, 1, blocks), (after, within, size, 1, blocks - 1)]
    rng, macs, spent = np.random.default_rng(0), 0, 0.0
    for inputs, outputs, size, window, count in layers:
        depth = inputs * window * window
        a, b = (
            FP16.widen(FP16.narrow(rng.standard_normal((depth, n)).astype(np.float32))) for n in (outputs, size * size)
        )
        groups, start = group_sizes(inputs, window * window), np.zeros((1, 1), np.float32)
        spent += count * seconds(lambda a=a, b=b, g=groups, s=start: fused_product(a, b, g, s), 1)  # type: ignore[misc]
        macs += count * depth * outputs * size * size
    return macs, spent


def main() -> None:
    """Print both tables."""
    print("precision  ic   oc   size  window    ms   times sgemm   fast: times sgemm")
    for shape in SHAPES:
        reference = seconds(sgemm(shape), 10)
        for precision in (Precision.INT8, Precision.FP32, Precision.FP16):
            exact, fast = (seconds(convolution(precision, shape, mode)) for mode in (False, True))
            inputs, outputs, size, window = shape
            place = f"{precision.name:9}  {inputs:3}  {outputs:3}  {size:4}  {window:6}"
            print(f"{place}  {exact * 1e3:6.2f}  {exact / reference:9.1f}  {fast / reference:12.1f}")
    macs, spent = resnet50()
    print(f"ResNet-50, fp16: {macs / 1e9:.2f} G multiply-accumulates in {spent:.1f} CPU s")


if __name__ == "__main__":
    main()
