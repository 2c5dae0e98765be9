"""Products on the matrix unit, written as a user would: their results, and their cycles by what the chip allows."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.backends.bm1684x.timing_profile import TimingProfile
from bmcompiler.runtime.bm1684x_kernels import KernelDevice
from bmcompiler.tpukernel import DT_FP16, FUNCTIONS, NPU_NUM, LocalMemory, dim4, kernel

COMPILED = 1436
"""Cycles of our compiler's own kernel for an f16 product of 64 x 128 and 128 x 128."""
_MACS_A_CYCLE = 8192
initialize, load, store = (FUNCTIONS[f"tpu_{name}"] for name in ("initialize", "gdma_cpy_S2L", "gdma_cpy_L2S"))
multiply, begin, end = (FUNCTIONS[f"tpu_{name}"] for name in ("bdc_fp_mm", "parallel_start", "parallel_end"))


@kernel
def product(dst: int, left: int, right: int, m: int, k: int, n: int) -> None:
    """dst = left @ right of f16, each in one piece."""
    memory, shapes = LocalMemory(), ((1, m, 1, k), (1, k, 1, n), (1, m, 1, n))
    a, b, y = (memory.alloc(shape, DT_FP16, bank=True) for shape in shapes)
    initialize()
    load(a, left, dim4(*shapes[0]), None, None, DT_FP16)
    load(b, right, dim4(*shapes[1]), None, None, DT_FP16)
    multiply(y, a, b, m, k, n, DT_FP16, DT_FP16, False)
    store(dst, y, dim4(*shapes[2]), None, None, DT_FP16)


@kernel
def tiled(dst: int, left: int, right: int, m: int, k: int, n: int, width: int) -> None:
    """dst = left @ right of f16 by columns: while one tile is multiplied the next is loaded and the last stored.

    Of the first tile the rows are multiplied as they come, one of each lane at a time.
    """
    memory, tile, out = LocalMemory(), dim4(1, k, 1, width), dim4(1, m, 1, width)
    a = memory.alloc((1, m, 1, k), DT_FP16, bank=True)
    b = [memory.alloc(tile, DT_FP16, bank=True) for _ in range(2)]
    y = [memory.alloc(out, DT_FP16, bank=True) for _ in range(2)]
    columns, blocks = range(0, n, width), m // NPU_NUM

    def rows(i: int) -> None:
        load(a + 2 * k * i, left + 2 * k * NPU_NUM * i, dim4(1, NPU_NUM, 1, k), None, None, DT_FP16)

    def fetch(i: int) -> None:
        load(b[i % 2], right + 2 * columns[i], tile, None, dim4(k * n, n, n, 1), DT_FP16)

    def put(i: int) -> None:
        store(dst + 2 * columns[i], y[i % 2], out, dim4(m * n, n, n, 1), None, DT_FP16)

    initialize()
    rows(0)
    fetch(0)
    for i in range(blocks):
        begin()
        if i + 1 < blocks:
            rows(i + 1)
        else:
            fetch(1)
        multiply(y[0] + 2 * width * i, a + 2 * k * i, b[0], NPU_NUM, k, width, DT_FP16, DT_FP16, False)
        end()
    for i in range(1, len(columns)):
        begin()
        if i + 1 < len(columns):
            fetch(i + 1)
        put(i - 1)
        multiply(y[i % 2], a, b[i % 2], m, k, width, DT_FP16, DT_FP16, False)
        end()
    put(len(columns) - 1)


def run(made: object, sizes: tuple[int, int, int], *more: int) -> int:
    """Cycles of a kernel whose result is right."""
    m, k, n = sizes
    device, rng = KernelDevice(1 << 23), np.random.default_rng(0)
    left, right = (rng.normal(size=shape).astype(np.float16) for shape in ((m, k), (k, n)))
    places = device.upload(left), device.upload(right)
    target = device.malloc(2 * m * n)
    program = made(target, *places, *sizes, *more)  # type: ignore[operator]
    device.launch(program)
    found = device.download(target, (m, n), np.float16).astype(np.float64)
    wanted = left.astype(np.float64) @ right.astype(np.float64)
    assert abs(found - wanted).max() <= 2**-11 * abs(wanted).max() + 2**-10
    cycles: int = device.analyze(program).timing().cycles
    return cycles


def test_a_product_in_one_piece_is_as_fast_as_the_compilers() -> None:
    assert run(product, (64, 128, 128)) <= 1.2 * COMPILED


@pytest.mark.slow
def test_a_product_in_tiles_is_near_its_roofline() -> None:
    m, k, n = sizes = (512, 1024, 1024)
    traffic = 2 * (m * k + k * n + m * n) / TimingProfile().bus_bytes_per_cycle
    assert run(tiled, sizes, 128) <= 1.25 * max(m * k * n / _MACS_A_CYCLE, traffic)
