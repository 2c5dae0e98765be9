"""Kernels as public firmware has them, in words of our own: each runs on a library of functions, ours or the vendor's.

A kernel finds its inputs in global memory at IN, AND, ALSO, and leaves its results at OUT. Functions are called without
"tpu_" in front.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.tpukernel import (
    BANK_SIZE,
    DT_FP16,
    DT_FP32,
    DT_INT32,
    DT_UINT8,
    DT_UINT32,
    GLOBAL_MEM_START,
    NPU_NUM,
    RM_HALF_TO_EVEN,
    SCALAR,
    TENSOR,
    VECTOR,
    dim2,
    dim4,
    padding_t,
    scalar_t,
    tpu_aligned_stride,
    variable_t,
)

Library = Any
Arrays = dict[int, NDArray[Any]]
IN, AND, ALSO, OUT = (GLOBAL_MEM_START + 0x2_0000 * number for number in range(4))
NONE, POINT = padding_t(0, 0, 0, 0), dim2(1, 1)


def _bank(number: int) -> int:
    return number * BANK_SIZE


def _row(rows: int) -> dim4:
    """Strides that give every column of a row its one value."""
    return tpu_aligned_stride(0, dim4(1, rows, 1, 1), DT_FP32)._replace(h=0, w=0)


def hypot(t: Library) -> None:
    """sqrt(a^2 + b^2) in three tiles: while one is computed, the one before is stored."""
    shape, waiting = dim4(1, NPU_NUM, 1, 37), None
    size = 4 * NPU_NUM * 37
    for tile in range(3):
        a, b, sums, out = (_bank(4 * (tile % 2) + number) for number in range(4))
        t.gdma_cpy_S2L(a, IN + tile * size, shape, None, None, DT_FP32)
        t.gdma_cpy_S2L(b, AND + tile * size, shape, None, None, DT_FP32)
        if tile:
            t.parallel_end()
        t.parallel_start()
        if waiting is not None:
            t.gdma_cpy_L2S(*waiting, shape, None, None, DT_FP32)
        t.bdc_fp_mul(a, a, a, shape, None, None, None, DT_FP32)
        t.bdc_fp_mul(b, b, b, shape, None, None, None, DT_FP32)
        t.bdc_fp_add(sums, a, b, shape, None, None, None, DT_FP32)
        t.bdc_fp32_sqrt(out, sums, shape)
        waiting = (OUT + tile * size, out)
    t.parallel_end()
    t.gdma_cpy_L2S(*waiting, shape, None, None, DT_FP32)


def clamp(t: Library) -> None:
    """Halves within [-0.75, 1.5], by selections."""
    shape = dim4(2, 70, 3, 5)
    low, high = (variable_t(SCALAR, scalar_t(u32=bits)) for bits in (0xBA00, 0x3E00))
    given, made = variable_t(TENSOR, 0), variable_t(TENSOR, _bank(4))
    t.gdma_cpy_S2L(0, IN, shape, None, None, DT_FP16)
    t.bdc_greater_select(_bank(4), given, high, high, given, shape, DT_FP16, DT_FP16)
    t.bdc_less_select(_bank(4), made, low, low, made, shape, DT_FP16, DT_FP16)
    t.gdma_cpy_L2S(OUT, _bank(4), shape, None, None, DT_FP16)


def arange(t: Library) -> None:
    """From -7 in steps of 3 as 64-bit numbers whose upper words are 0, as firmware writes them, and as floats."""
    count = 300
    shape = dim4(1, count, 1, 1)
    packed = dim4((count + NPU_NUM - 1) // NPU_NUM, 1, 1, 1)
    t.gdma_set_C_system(OUT, scalar_t(u32=0), dim4(1, count, 1, 2), None, DT_INT32)
    t.bdc_arithmetic_sequence_distribute(0, -7, 3, count)
    t.bdc_int_add_C(0, 0, scalar_t(s32=0), shape, packed, packed, *[DT_INT32] * 3, 0, RM_HALF_TO_EVEN, False)
    t.gdma_cpy_L2S(OUT, 0, shape, dim4(2 * count, 2, 2, 2), packed, DT_INT32)
    t.bdc_cast(0, 0, shape, packed, packed, DT_FP32, DT_INT32, RM_HALF_TO_EVEN)
    t.gdma_cpy_L2S(OUT + 0x1_0000, 0, shape, None, packed, DT_FP32)


def where(t: Library) -> None:
    """A condition per row and column, the same in all channels, chooses numbers or a constant."""
    shape = dim4(1, 70, 6, 9)
    condition, chosen, out = 0, _bank(2), _bank(4)
    strides = tpu_aligned_stride(0, shape, DT_UINT8)
    t.gdma_cpy_S2L(condition, AND, shape._replace(c=1), strides, None, DT_UINT8)
    t.bdc_npu_bcast(condition, condition, shape._replace(c=NPU_NUM), DT_UINT8)
    t.bdc_cpy(condition, condition, shape, None, strides._replace(c=0), DT_UINT8)
    t.gdma_cpy_S2L(chosen, IN, shape, None, None, DT_FP32)
    zero, minus = variable_t(SCALAR, scalar_t(u32=0)), variable_t(SCALAR, scalar_t(f32=-1.0))
    wide = _bank(6)
    t.bdc_cast(wide, condition, shape, None, None, DT_UINT32, DT_UINT8, RM_HALF_TO_EVEN)
    sources = variable_t(TENSOR, wide), zero, minus, variable_t(TENSOR, chosen)
    t.bdc_equal_select(out, *sources, shape, DT_UINT32, DT_FP32)
    t.gdma_cpy_L2S(OUT, out, shape, None, None, DT_FP32)


def softmax(t: Library) -> None:
    """Of rows of halves, in floats."""
    rows, columns = 66, 90
    shape, one = dim4(1, rows, 1, columns), dim4(1, rows, 1, 1)
    x, y, work0, work1, halves, value, series = (_bank(number) for number in range(7))
    window = (shape, dim2(1, columns), NONE, POINT, POINT, DT_FP32)
    t.parallel_start()
    t.bdc_load_fp32_exp_coeff(series)
    t.gdma_cpy_S2L(halves, IN, shape, None, None, DT_FP16)
    t.parallel_end()
    t.bdc_cast(x, halves, shape, None, None, DT_FP32, DT_FP16, RM_HALF_TO_EVEN)
    t.bdc_fp_max_pool2d(value, x, *window, scalar_t(f32=-3e38))
    t.bdc_fp_sub(y, x, value, shape, None, None, _row(rows), DT_FP32)
    t.bdc_fp_exp(x, y, work0, work1, series, shape, DT_FP32)
    t.bdc_fp_avg_pool2d(value, x, *window, scalar_t(f32=1.0))
    t.bdc_fp32_C_div(value, value, 1.0, one, None, None)
    t.bdc_fp_mul(y, x, value, shape, None, None, _row(rows), DT_FP32)
    t.bdc_cast(halves, y, shape, None, None, DT_FP16, DT_FP32, RM_HALF_TO_EVEN)
    t.gdma_cpy_L2S(OUT, halves, shape, None, None, DT_FP16)


def layer_norm(t: Library) -> None:
    """Rows less their mean, over the root of their variance, times a weight and with a bias for each column."""
    rows, columns = 67, 96
    shape, one, line = dim4(1, rows, 1, columns), dim4(1, rows, 1, 1), dim4(1, NPU_NUM, 1, columns)
    x, squares, weight, bias, value = (_bank(number) for number in range(5))
    along = tpu_aligned_stride(0, line, DT_FP32)._replace(c=0)
    window = (shape, dim2(1, columns), NONE, POINT, POINT, DT_FP32, scalar_t(f32=1 / columns))
    t.gdma_cpy_S2L(x, IN, shape, None, None, DT_FP32)
    for place, source in ((weight, AND), (bias, ALSO)):
        t.gdma_channel_bcast_S2L(place, source, line, None, dim4(0, 0, columns, 1), DT_FP32)
    t.bdc_fp_avg_pool2d(value, x, *window)
    t.bdc_fp_sub(x, x, value, shape, None, None, _row(rows), DT_FP32)
    t.bdc_fp_mul(squares, x, x, shape, None, None, None, DT_FP32)
    t.bdc_fp_avg_pool2d(value, squares, *window)
    t.bdc_fp_add_C(value, value, scalar_t(f32=1e-5), one, None, None, DT_FP32)
    t.bdc_fp_rsqrt(value, value, one, DT_FP32)
    t.bdc_fp_mul(x, x, value, shape, None, None, _row(rows), DT_FP32)
    t.bdc_fp_mul(x, x, weight, shape, None, None, along, DT_FP32)
    t.bdc_fp_add(x, x, bias, shape, None, None, along, DT_FP32)
    t.gdma_cpy_L2S(OUT, x, shape, None, None, DT_FP32)


def index_select(t: Library) -> None:
    """Rows of 3 tables by indices that were 64-bit numbers: their lower words are gathered first."""
    count, height, width = 11, 20, 17
    low = AND + 0x1_0000
    t.gdma_general_cpy_S2L(0, AND, *[dim4(1, 1, 1, count)] * 2, None, dim4(0, 0, 2 * count, 2), DT_INT32)
    t.gdma_cpy_L2S(low, 0, dim4(1, 1, 1, count), None, None, DT_INT32)
    strides = dim4(3 * count * width, count * width, width, 1), dim4(3 * height * width, height * width, width, 1)
    shape, index = dim4(1, 3, count, width), dim4(1, 0, 1, 1)
    t.gdma_h_gather_S2S(OUT, IN, low, False, scalar_t(s32=0), shape, height, *strides, index, DT_FP32)


def flip(t: Library) -> None:
    """The rows of a table from the last to the first, by indices that are computed."""
    height, width = 65, 12
    t.bdc_arithmetic_sequence_bcast(0, 1, height - 1, -1, height)
    t.gdma_cpy_L2S(ALSO, 0, dim4(1, 1, 1, height), None, None, DT_INT32)
    shape = dim4(1, 1, height, width)
    t.gdma_h_gather_S2S(OUT, IN, ALSO, False, scalar_t(u32=0), shape, height, None, None, None, DT_FP32)


def embedding_backward(t: Library) -> None:
    """Rows of a gradient are added to rows of a table: one window of different rows."""
    count, width, height = 9, 24, 30
    shape, row = dim4(1, count, 1, width), dim4(0, 0, width, 1)
    t.gdma_set_C_system(OUT, scalar_t(f32=0.5), dim4(1, 1, height, width), None, DT_FP32)
    zero = scalar_t(u32=0)
    t.gdma_h_gather_S2L(_bank(0), IN, AND, False, zero, shape, 40, None, row, None, DT_FP32)
    t.gdma_h_gather_S2L(_bank(1), OUT, ALSO, False, zero, shape, height, None, row, None, DT_FP32)
    t.bdc_fp_add(_bank(2), _bank(0), _bank(1), shape, None, None, None, DT_FP32)
    t.gdma_h_scatter_L2S(OUT, _bank(2), ALSO, False, dim4(1, count, height, width), 1, row, None, None, DT_FP32)


def not_a_number(t: Library) -> None:
    """1 where a float is no number, and where it is finite, by bits."""
    shape, one = dim4(1, 40, 1, 33), scalar_t(u32=1)
    infinity, all_but_sign = scalar_t(u32=0x7F80_0000), scalar_t(u32=0x7FFF_FFFF)
    x, masked, full, more = (_bank(number) for number in range(4))
    t.gdma_cpy_S2L(x, IN, shape, None, None, DT_FP32)
    t.bdc_and_C(masked, x, infinity, shape, None, None, DT_FP32)
    t.bdc_equal_C(full, masked, infinity, one, shape, None, None, DT_UINT8, DT_FP32)
    t.bdc_and_C(masked, x, all_but_sign, shape, None, None, DT_FP32)
    t.bdc_not_equal_C(more, masked, infinity, one, shape, None, None, DT_UINT8, DT_FP32)
    t.bdc_and(full, full, more, shape, None, None, None, DT_UINT8)
    t.gdma_cpy_L2S(OUT, full, shape, None, None, DT_UINT8)
    t.bdc_fp_isfinite(more, x, masked, shape, DT_FP32)
    t.gdma_cpy_L2S(OUT + 0x1_0000, more, shape, None, None, DT_FP32)


def one_hot(t: Library) -> None:
    """Smoothed classes: 0.9 at the class of each row, 0.1 elsewhere, as a cross entropy compares with."""
    rows, classes = 50, 31
    line = dim4(1, NPU_NUM, 1, classes)
    shape = dim4(1, rows, 1, classes)
    t.gdma_cpy_S2L(_bank(1), AND, dim4(1, rows, 1, 1), dim4(1, 1, 1, 1), None, DT_INT32)
    t.bdc_arithmetic_sequence_bcast(0, NPU_NUM, 0, 1, line.w)
    choices = (variable_t(SCALAR, scalar_t(f32=value)) for value in (0.9, 0.1))
    classes_of_rows = variable_t(VECTOR, _bank(1))
    t.bdc_equal_select(_bank(2), variable_t(TENSOR, 0), classes_of_rows, *choices, shape, DT_INT32, DT_FP32)
    t.gdma_cpy_L2S(OUT, _bank(2), shape, None, None, DT_FP32)


def _floats(count: int, kind: Any = np.float32) -> Callable[[np.random.Generator], NDArray[Any]]:
    return lambda rng: rng.normal(size=count).astype(kind)


def _places(count: int, most: int, wide: bool = False) -> Callable[[np.random.Generator], NDArray[Any]]:
    """Different ones; `wide`: of 64 bits."""
    return lambda rng: rng.permutation(most)[:count].astype(np.int64 if wide else np.int32)


def _odd(rng: np.random.Generator) -> NDArray[Any]:
    bits = np.array([0, 1 << 31, 1, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0xFFC0_0001, 0x3F80_0000], np.uint32)
    return rng.choice(bits, 1320)


KERNELS: dict[Callable[[Library], None], dict[int, Callable[[np.random.Generator], NDArray[Any]]]] = {
    hypot: {IN: _floats(7104), AND: _floats(7104)},
    clamp: {IN: _floats(2100, np.float16)},
    arange: {},
    where: {IN: _floats(3780), AND: lambda rng: rng.integers(0, 2, 54, dtype=np.uint8)},
    softmax: {IN: _floats(5940, np.float16)},
    layer_norm: {IN: _floats(6432), AND: _floats(96), ALSO: _floats(96)},
    index_select: {IN: _floats(1020), AND: _places(11, 20, wide=True)},
    flip: {IN: _floats(780)},
    embedding_backward: {IN: _floats(960), AND: _places(9, 40), ALSO: _places(9, 30)},
    not_a_number: {IN: _odd},
    one_hot: {AND: lambda rng: rng.integers(0, 31, 50, dtype=np.int32)},
}
"""Kernel -> what draws its inputs, by their addresses."""


def inputs(kernel: Callable[[Library], None]) -> Arrays:
    """The inputs of a kernel, by their addresses; the same every time."""
    rng = np.random.default_rng(len(kernel.__name__))
    return {address: draw(rng) for address, draw in KERNELS[kernel].items()}
