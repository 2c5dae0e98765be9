"""A kernel for the BM1684 with a fault is refused with one sentence, or runs: never another exception."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from kernel_faults import ODD, Call, mutated, need_sentences

from bmcompiler.okkernel import FUNCTIONS, Padding, Program, dim2, dim4, kernel, x32
from bmcompiler.runtime.bm1684_kernels import OkkernelDevice

GLOBAL_BYTES = 1 << 20
_SHAPE, _ROW = dim4(2, 70, 5, 7), dim4(1, 70, 1, 1)
_ALONG = dim4(0, 32, 0, 0)
_A, _B, _C, _D = 0, 0x4000, 0x1_0000, 0x2_0000


def softmax(dst: int, src: int) -> list[Call]:
    """Over channels, as docs/okkernel.md has it."""
    window = (_SHAPE, 70, 1, 1, None, dim4(0, 0, 0, 0), False, False, None, None, None)
    return [
        ("okk_initialize", []),
        ("okk_gdma_32bit_cpy_S2L", [_A, src, _SHAPE, None, None]),
        ("okk_bdc_exp", [_B, _A, _C, _SHAPE]),
        ("okk_bdc_32bit_set_C", [_D, x32(fp32=1.0), dim4(1, 70, 1, 2), None]),
        ("okk_bdc_conv2d", [_C, _B, _D, 0, *window]),
        ("okk_bdc_div", [_A, _B, _C, _SHAPE, None, None, None]),
        ("okk_gdma_32bit_cpy_L2S", [dst, _A, _SHAPE, None, None]),
        ("okk_poll", []),
    ]


def windows(dst: int, src: int) -> list[Call]:
    """Pooling and a depthwise convolution, while the next image is loaded."""
    window = (_SHAPE, 2, 3, Padding(1, 0, 2, 1), dim2(1, 2))
    out = dim4(2, 70, 5, 4)
    return [
        ("okk_initialize", []),
        ("okk_gdma_32bit_cpy_S2L", [_A, src, _SHAPE, None, None]),
        ("okk_gdma_32bit_cpy_S2L", [_C, src + 4096, dim4(1, 70, 2, 3), dim4(12, 6, 3, 1), None]),
        ("okk_parallel_start", []),
        ("okk_bdc_depthwise2d", [_B, _A, _C, 0, *window[:3], False, *window[3:], None]),
        ("okk_gdma_32bit_cpy_S2L", [_D, src + 65536, _SHAPE, None, None]),
        ("okk_parallel_end", []),
        ("okk_gdma_32bit_cpy_L2S", [dst, _B, out, None, None]),
        ("okk_bdc_avg_pool2d", [_B, _D, *window]),
        ("okk_bdc_max_pool2d", [_C, _D, *window]),
        ("okk_gdma_32bit_cpy_L2S", [dst + 65536, _C, out, None, None]),
    ]


def arithmetic(dst: int, src: int) -> list[Call]:
    """Elements, with strides and without, functions and a product of matrices."""
    return [
        ("okk_initialize", []),
        ("okk_gdma_32bit_cpy_S2L", [_A, src, _SHAPE, None, None]),
        ("okk_gdma_32bit_cpy_S2L", [_C, src, _ROW, None, None]),
        ("okk_bdc_add_C", [_A, _A, 0.5, _SHAPE, None, None]),
        ("okk_bdc_sub", [_B, _A, _C, _SHAPE, None, None, _ALONG]),
        ("okk_bdc_mac", [_B, _A, _A, _SHAPE, None, None, None]),
        ("okk_bdc_sigmoid", [_D, _B, _C, _SHAPE]),
        ("okk_gdma_32bit_cpy_L2S", [dst, _D, _SHAPE, None, None]),
        ("okk_gdma_32bit_matrix_S2L", [_A, src, 9, 100, 20, 100]),
        ("okk_gdma_32bit_matrix_S2L", [_C, src + 65536, 100, 96, 32, 96]),
        ("okk_bdc_matmul", [_B, _A, _C, 0, 9, 100, 96, 20, 32, False, False]),
        ("okk_gdma_32bit_matrix_L2S", [dst, _B, 9, 96, 32, 96]),
    ]


KERNELS: tuple[Callable[[int, int], list[Call]], ...] = softmax, windows, arithmetic


def other(value: Any, random: Random) -> Any:
    """What somebody might write in its place."""
    if isinstance(value, (bool, float)) or value is None:
        return random.choice((None, True, False, 0, 1, 2.5, dim4(1, 1, 1, 1), _ALONG))
    if isinstance(value, x32):
        return random.choice((x32(random.getrandbits(32)), 1.5, None, random.getrandbits(40)))
    if isinstance(value, tuple):
        numbers = list(value)
        numbers[random.randrange(len(numbers))] = random.choice(ODD)
        made = tuple(numbers) if type(value) is tuple else type(value)(*numbers)
        return random.choice((made, made, made, tuple(numbers[:-1]), None, numbers))
    nearby = (value + random.choice((-64, -4, -1, 1, 2, 4, 32, 64, 1 << 14, 1 << 19, 5 << 19)), value * 2, value ^ 64)
    return random.choice((*nearby, *nearby, random.choice(ODD)))


def program_of_calls(calls: list[Call]) -> Program:
    """What these calls issue. Raises BMError."""

    @kernel
    def issued() -> None:
        for name, arguments in calls:
            FUNCTIONS[name](*arguments)

    return issued()


def ask(seeds: range) -> None:
    card = OkkernelDevice(GLOBAL_BYTES)
    source = card.upload(np.random.default_rng(0).normal(size=GLOBAL_BYTES // 16).astype(np.float32))
    target = card.malloc(GLOBAL_BYTES // 2)

    def drawn(seed: int) -> list[Call]:
        random = Random(seed)
        return mutated(random.choice(KERNELS)(target, source), random, other)

    need_sentences(map(drawn, seeds), program_of_calls, card.launch, "okk_")


@pytest.mark.parametrize("made", KERNELS)
def test_without_a_fault_they_run_and_are_sound(made: Callable[[int, int], list[Call]]) -> None:
    card = OkkernelDevice(GLOBAL_BYTES)
    source, target = card.malloc(GLOBAL_BYTES // 4), card.malloc(GLOBAL_BYTES // 2)
    card.launch(program_of_calls(made(target, source)), check=True)


def test_a_mutated_kernel_is_refused_in_a_sentence_or_runs() -> None:
    ask(range(100, 160))


@pytest.mark.sweep
def test_two_thousand_mutated_kernels() -> None:
    ask(range(1000, 3000))
