"""Kernels with faults as people make them: the calls of a kernel, of which a few are changed, left out or moved."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from kernel_faults import ODD, Call

from bmcompiler.runtime.bm1684x_kernels import KernelDevice
from bmcompiler.tpukernel import (
    DT_FP16,
    DT_FP32,
    DT_INT8,
    DT_INT32,
    FUNCTIONS,
    LibraryFunction,
    LocalMemory,
    Program,
    data_type_t,
    dim2,
    dim4,
    kernel,
    padding_t,
    rounding_mode_t,
    scalar_t,
)

GLOBAL_BYTES = 1 << 20
_SHAPE, _ONE = dim4(1, 70, 2, 24), dim4(1, 70, 1, 1)
_ROW = dim4(0, 1, 0, 0)


def _of(name: str) -> LibraryFunction:
    return FUNCTIONS[f"tpu_{name}"]


@kernel
def softmax(dst: int, src: int) -> None:
    """Of rows, as docs/tpukernel.md has it."""
    row, one = dim4(1, 70, 1, 48), _ONE
    memory = LocalMemory()
    x, y, work0, work1 = (memory.alloc(row, DT_FP32, bank=True) for _ in range(4))
    value, series = memory.alloc(one, DT_FP32), memory.alloc((1, 64, 1, 32), DT_FP32)
    along = _of("aligned_stride")(0, one, DT_FP32)._replace(h=0, w=0)
    window = (row, dim2(1, 48), padding_t(0, 0, 0, 0), dim2(1, 1), dim2(1, 1), DT_FP32)
    _of("initialize")()
    _of("bdc_load_fp32_exp_coeff")(series)
    _of("gdma_cpy_S2L")(x, src, row, None, None, DT_FP32)
    _of("bdc_fp_max_pool2d")(value, x, *window, scalar_t(f32=-3.4e38))
    _of("bdc_fp_sub")(y, x, value, row, None, None, along, DT_FP32)
    _of("bdc_fp32_exp")(x, y, work0, work1, series, 0, row)
    _of("bdc_fp_avg_pool2d")(value, x, *window, scalar_t(f32=1.0))
    _of("bdc_fp32_reciprocal")(value, value, one, None, None)
    _of("bdc_fp_mul")(y, x, value, row, None, None, along, DT_FP32)
    _of("gdma_cpy_L2S")(dst, y, row, None, None, DT_FP32)
    _of("poll")()


@kernel
def convolution(dst: int, src: int) -> None:
    """3 x 3 with a bias, behind it ReLU, beside transfers of the next image."""
    image, out = dim4(1, 3, 10, 12), dim4(1, 8, 10, 12)
    memory = LocalMemory()
    x, other, y = memory.alloc(image, DT_FP16), memory.alloc(image, DT_FP16), memory.alloc(out, DT_FP16)
    weight, bias = memory.alloc_bytes(4096), memory.alloc_bytes(64)
    _of("initialize")()
    _of("gdma_cpy_S2L")(x, src, image, None, None, DT_FP16)
    _of("gdma_compact_S2L")(weight, src + 4096, dim4(1, 8, 9, 32), DT_FP16)
    _of("gdma_compact_S2L")(bias, src + 65536, dim4(1, 8, 1, 1), DT_FP32)
    _of("parallel_start")()
    _of("gdma_cpy_S2L")(other, src + 1024, image, None, None, DT_FP16)
    window = (8, dim2(3, 3), padding_t(1, 1, 1, 1), dim2(1, 1), dim2(1, 1))
    _of("bdc_fp_conv2d")(y, x, weight, bias, image, None, *window, DT_FP16, DT_FP16, True, False)
    _of("bdc_relu")(y, y, out, None, None, DT_FP16)
    _of("parallel_end")()
    _of("gdma_cpy_L2S")(dst, y, out, None, None, DT_FP16)


@kernel
def integers(dst: int, src: int) -> None:
    """Bytes times bytes, requantized, compared, gathered along rows, copied transposed."""
    shape = _SHAPE
    a, b, wide, narrow, picked = (bank << 14 for bank in range(5))
    _of("initialize")()
    _of("gdma_cpy_S2L")(a, src, shape, None, None, DT_INT8)
    _of("gdma_cpy_S2L")(b, src + 8192, shape, None, None, DT_INT8)
    rounding = rounding_mode_t(0)
    product = DT_INT32, DT_INT8, DT_INT8, 0, rounding, True
    _of("bdc_int_mul")(wide, a, b, shape, None, None, None, *product)
    _of("bdc_int_requant")(narrow, wide, shape, 3 << 20, -24, scalar_t(s32=5), DT_INT8, DT_INT32, rounding)
    _of("bdc_greater")(picked, narrow, a, scalar_t(s8=1), shape, None, None, None, DT_INT8, DT_INT8)
    _of("gdma_cpy_cw_trans_L2S")(dst, picked, dim4(1, 24, 2, 70), None, None, DT_INT8)
    _of("gdma_set_C_system")(dst + 65536, scalar_t(s32=7), dim4(1, 1, 1, 100), None, DT_INT32)
    _of("gdma_cpy_S2S")(dst + 131072, dst, shape, None, None, DT_INT8)


@kernel
def products(dst: int, src: int) -> None:
    """Matrices of floats and of bytes."""
    a, b, y = 0, 1 << 15, 1 << 16
    _of("initialize")()
    _of("gdma_cpy_S2L")(a, src, dim4(1, 40, 1, 32), None, None, DT_FP16)
    _of("gdma_cpy_S2L")(b, src + 8192, dim4(1, 32, 1, 56), None, None, DT_FP16)
    _of("bdc_fp_mm")(y, a, b, 40, 32, 56, DT_FP32, DT_FP16, False)
    _of("gdma_matrix_L2S")(dst, y, 40, 56, 56, 56, DT_FP32)
    _of("gdma_matrix_S2L")(a, src, 20, 30, 16, 40, DT_FP32)
    _of("gdma_matrix_S2L")(b, src + 8192, 30, 48, 16, 48, DT_FP32)
    _of("bdc_fp32_mm")(y, a, b, 0, 20, 30, 48, 16, 16, False, False)
    _of("gdma_matrix_L2S")(dst + 65536, y, 20, 48, 16, 48, DT_FP32)


KERNELS = softmax, convolution, integers, products


def device() -> tuple[KernelDevice, int, int]:
    """A card with numbers in its memory, and where a kernel writes and reads."""
    card = KernelDevice(GLOBAL_BYTES)
    source = card.upload(np.random.default_rng(0).normal(size=GLOBAL_BYTES // 16).astype(np.float32))
    return card, card.malloc(GLOBAL_BYTES // 2), source


def calls_of(function: Callable[..., Program], dst: int, src: int) -> list[Call]:
    """The calls of a kernel that issue commands."""
    found: list[Call] = []
    called = LibraryFunction.__call__

    def spy(self: LibraryFunction, *arguments: Any) -> Any:
        if self.row.returns == "void":
            found.append((self.row.name, list(arguments)))
        return called(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LibraryFunction, "__call__", spy)
        function(dst, src)
    return [call for call in found if call[0] != "tpu_aligned_stride"]


def other(value: Any, random: Random) -> Any:
    """What somebody might write in its place."""
    if isinstance(value, (bool, float)) or value is None:
        return random.choice((None, True, False, 0, 1, 2.5, dim4(1, 1, 1, 1), _ROW))
    if isinstance(value, data_type_t):
        return random.choice((*data_type_t, 77, None))
    if isinstance(value, rounding_mode_t):
        return random.choice((*rounding_mode_t, 99))
    if isinstance(value, scalar_t):
        return random.choice((scalar_t(random.getrandbits(32)), 1.5, None, random.getrandbits(40)))
    if isinstance(value, tuple):
        numbers = list(value)
        numbers[random.randrange(len(numbers))] = random.choice(ODD)
        made = tuple(numbers) if type(value) is tuple else type(value)(*numbers)
        return random.choice((made, made, made, tuple(numbers[:-1]), None, numbers))
    nearby = (value + random.choice((-64, -4, -1, 1, 2, 4, 32, 64, 1 << 14, 1 << 18, 5 << 18)), value * 2, value ^ 64)
    return random.choice((*nearby, *nearby, random.choice(ODD)))


def program_of_calls(calls: list[Call]) -> Program:
    """What these calls issue. Raises BMError."""

    @kernel
    def broken() -> None:
        for name, arguments in calls:
            FUNCTIONS[name](*arguments)

    return broken()
