"""Kernels on the simulated chip against numpy, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bmcompiler.backends.bm1684.okkernel import recorder
from bmcompiler.backends.bm1684.okkernel.unavailable import UNAVAILABLE
from bmcompiler.errors import SimulatorError, UsageError
from bmcompiler.numeric.arrays import Floats
from bmcompiler.okkernel import (
    FUNCTIONS,
    GLOBAL_MEM_START,
    Padding,
    dim2,
    dim4,
    kernel,
    okk_128_byte_aligned_stride_for_32bit,
    okk_bdc_32bit_cpy,
    okk_bdc_32bit_set_C,
    okk_bdc_add,
    okk_bdc_add_C,
    okk_bdc_avg_pool2d,
    okk_bdc_conv2d,
    okk_bdc_depthwise2d,
    okk_bdc_div,
    okk_bdc_equal_select,
    okk_bdc_exp,
    okk_bdc_fixed_point_packed_add,
    okk_bdc_greater_select,
    okk_bdc_mac,
    okk_bdc_matmul,
    okk_bdc_max_pool2d,
    okk_bdc_mul_C,
    okk_bdc_sigmoid,
    okk_bdc_sqrt,
    okk_bdc_sub,
    okk_bdc_tanh,
    okk_compact_stride,
    okk_gdma_32bit_cpy_L2S,
    okk_gdma_32bit_cpy_S2L,
    okk_gdma_32bit_matrix_L2S,
    okk_gdma_32bit_matrix_S2L,
    okk_global_mem_addr,
    okk_initialize,
    okk_parallel_end,
    okk_parallel_start,
    okk_poll,
    recording,
    x32,
)
from bmcompiler.runtime.bm1684_kernels import OkkernelDevice

SHAPE = dim4(2, 70, 5, 7)
A, B, C, D = 0, 0x4000, 0x1_0000, 0x2_0000


def launched(emit: Callable[..., None], shape: tuple[int, ...], *arrays: Floats) -> Floats:
    """What a kernel makes of arrays: it is called with the addresses of the result and of these."""
    device = OkkernelDevice(1 << 22)
    given = [device.upload(each) for each in arrays]
    target = device.malloc(4 * int(np.prod(shape)))

    @kernel
    def whole() -> None:
        okk_initialize()
        emit(target, *given)
        okk_poll()

    program = whole()
    assert not list(device.analyze(program).races(1)) and device.analyze(program).timing().cycles > 0
    device.launch(program)
    found: Floats = device.download(target, shape)
    return found


def drawn(*shape: int) -> Floats:
    return np.random.default_rng(len(shape)).normal(0, 2, shape).astype(np.float32)


FUNCTIONS_OF_X: dict[str, tuple[Callable[..., None], Callable[[Floats], Floats]]] = {
    "exp": (lambda: okk_bdc_exp(B, A, C, SHAPE), np.exp),
    "sigmoid": (lambda: okk_bdc_sigmoid(B, A, C, SHAPE), lambda x: 1 / (1 + np.exp(-x))),
    "tanh": (lambda: okk_bdc_tanh(B, A, C, SHAPE), np.tanh),
    "sqrt": (lambda: okk_bdc_sqrt(B, A, SHAPE), np.sqrt),
}


@pytest.mark.parametrize("name", FUNCTIONS_OF_X)
def test_functions_of_floats(name: str) -> None:
    emit, meaning = FUNCTIONS_OF_X[name]
    x = np.abs(drawn(*SHAPE)) + np.float32(0.01)

    def whole(target: int, source: int) -> None:
        okk_gdma_32bit_cpy_S2L(A, source, SHAPE, None, None)
        emit()
        okk_gdma_32bit_cpy_L2S(target, B, SHAPE, None, None)

    np.testing.assert_allclose(launched(whole, SHAPE, x), meaning(x.astype(np.float64)), rtol=3e-6, atol=1e-6)


def test_arithmetic_with_and_without_strides() -> None:
    x, y, row = drawn(*SHAPE), drawn(*SHAPE)[::-1].copy(), drawn(1, 70, 1, 1)

    def whole(target: int, first: int, second: int, third: int) -> None:
        okk_gdma_32bit_cpy_S2L(A, first, SHAPE, None, None)
        okk_gdma_32bit_cpy_S2L(B, second, SHAPE, None, None)
        okk_gdma_32bit_cpy_S2L(C, third, dim4(1, 70, 1, 1), None, None)
        okk_bdc_add_C(A, A, 0.5, SHAPE, None, None)
        okk_bdc_mac(A, A, B, SHAPE, None, None, None)
        channel = okk_128_byte_aligned_stride_for_32bit(0, dim4(1, 70, 1, 1))
        okk_bdc_sub(A, A, C, SHAPE, None, None, channel._replace(n=0, h=0, w=0))
        okk_gdma_32bit_cpy_L2S(target, A, SHAPE, None, None)

    sums = x + np.float32(0.5)
    np.testing.assert_allclose(launched(whole, SHAPE, x, y, row), sums + sums * y - row, rtol=1e-5, atol=1e-5)


def test_pooling_and_depthwise() -> None:
    x, weight = drawn(*SHAPE), drawn(70, 2, 3)
    pads, step = Padding(1, 0, 2, 1), dim2(1, 2)
    out = dim4(2, 70, 5, 4)
    size = int(np.prod(out)) * 4

    def whole(target: int, source: int, weights: int) -> None:
        kernel_shape = dim4(1, 70, 2, 3)
        okk_gdma_32bit_cpy_S2L(A, source, SHAPE, None, None)
        okk_gdma_32bit_cpy_S2L(C, weights, kernel_shape, okk_compact_stride(0, kernel_shape), None)
        okk_bdc_depthwise2d(B, A, C, 0, SHAPE, 2, 3, False, pads, step, None)
        okk_gdma_32bit_cpy_L2S(target, B, out, None, None)
        okk_bdc_avg_pool2d(B, A, SHAPE, 2, 3, pads, step)
        okk_gdma_32bit_cpy_L2S(target + size, B, out, None, None)
        okk_bdc_max_pool2d(B, A, SHAPE, 2, 3, pads, step)
        okk_gdma_32bit_cpy_L2S(target + 2 * size, B, out, None, None)

    found = launched(whole, (3, *out), x, weight)

    def windows(border: float) -> Floats:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (2, 1)), constant_values=border)
        return np.lib.stride_tricks.sliding_window_view(padded, (2, 3), axis=(2, 3))[:, :, :, ::2]

    np.testing.assert_allclose(found[0], np.einsum("nchwij,cij->nchw", windows(0), weight), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], windows(0).mean((4, 5)), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found[2], windows(-np.inf).max((4, 5)))


def test_softmax_over_channels_by_a_convolution_with_ones() -> None:
    """As kernels of the contest sum over channels: a window of one pixel, all weights 1."""
    shape = dim4(2, 70, 5, 7)
    x = drawn(*shape)

    def whole(target: int, source: int) -> None:
        okk_gdma_32bit_cpy_S2L(A, source, shape, None, None)
        okk_bdc_exp(B, A, C, shape)
        okk_bdc_32bit_set_C(D, x32(fp32=1.0), dim4(1, 70, 1, 2), None)
        okk_bdc_conv2d(C, B, D, 0, shape, 70, 1, 1, None, dim4(0, 0, 0, 0), False, False, None, None, None)
        okk_bdc_div(A, B, C, shape, None, None, None)
        okk_gdma_32bit_cpy_L2S(target, A, shape, None, None)

    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(launched(whole, shape, x), e / e.sum(1, keepdims=True), rtol=1e-5)


def test_matrices() -> None:
    left, right = drawn(9, 100), drawn(100, 90)

    def whole(target: int, first: int, second: int) -> None:
        okk_gdma_32bit_matrix_S2L(A, first, 9, 100, 20, 100)
        okk_gdma_32bit_matrix_S2L(C, second, 100, 90, 32, 90)
        okk_bdc_matmul(B, A, C, 0, 9, 100, 90, 20, 32, False, False)
        okk_gdma_32bit_matrix_L2S(target, B, 9, 90, 32, 90)

    np.testing.assert_allclose(launched(whole, (9, 90), left, right), left @ right, rtol=1e-4, atol=1e-4)


def test_parallel_state_and_its_races() -> None:
    device = OkkernelDevice(1 << 20)
    source = device.upload(drawn(*SHAPE))

    @kernel
    def pair(where: int) -> None:
        okk_gdma_32bit_cpy_S2L(A, source, SHAPE, None, None)
        okk_parallel_start()
        okk_bdc_add(B, A, A, SHAPE, None, None, None)
        okk_gdma_32bit_cpy_S2L(where, source, SHAPE, None, None)
        okk_parallel_end()

    assert not list(device.analyze(pair(C)).races(1))
    (race,) = device.analyze(pair(A)).races(1)
    assert "okk_bdc_add at test_okkernel_kernels.py" in str(race)
    with pytest.raises(UsageError, match="ends in parallel state"):
        kernel(okk_parallel_start)()
    with recording(), pytest.raises(UsageError, match="okk_poll: the parallel state must end before"):
        okk_parallel_start()
        okk_poll()


def test_ids_begin_again_before_they_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert recorder.MOST_IDS == 60000
    monkeypatch.setattr(recorder, "MOST_IDS", most := 20)

    @kernel
    def long() -> None:
        for _ in range(most + 1):
            okk_bdc_add_C(A, A, 1.0, dim4(1, 1, 1, 1), None, None)

    program = long()
    assert len(program) == most + 1 and len(program.groups) == 2
    device = OkkernelDevice(1 << 12)
    device.launch(program)
    assert device.local(A, (1, 1, 1, 1)).item() == most + 1


@pytest.mark.parametrize("shape", [SHAPE, dim4(1, 3, 2, 2)])
@pytest.mark.parametrize("numbers", range(16))
def test_choices_between_tensors_and_numbers(shape: dim4, numbers: int) -> None:
    rng = np.random.default_rng(numbers)
    a, b, c, d = (rng.integers(-2, 3, shape).astype(np.float32) for _ in range(4))
    given, wanted = [], []
    for index, (array, number) in enumerate(zip((a, b, c, d), (1.0, -1.0, 7.5, -3.0))):
        constant = bool(numbers >> index & 1)
        place = number if constant else (A, B, C, D)[index]
        bits = x32(fp32=number) if constant and index > 1 else place
        given.append((not constant, bits))
        wanted.append(np.full(shape, number, np.float32) if constant else array)

    def emit(out: int, *sources: int) -> None:
        for local, source in zip((A, B, C, D), sources):
            okk_gdma_32bit_cpy_S2L(local, source, shape, None, None)
        okk_bdc_greater_select(0x3_0000, *given, shape)
        okk_bdc_equal_select(0x3_8000, *given, shape)
        okk_bdc_32bit_cpy(0x4_0000, 0x3_0000, shape, None, None)
        okk_bdc_mul_C(0x4_0000, 0x4_0000, 100.0, shape, None, None)
        okk_bdc_add(0x4_0000, 0x4_0000, 0x3_8000, shape, None, None, None)
        okk_gdma_32bit_cpy_L2S(out, 0x4_0000, shape, None, None)

    x, y, first, second = wanted
    exact = np.where(x > y, first, second) * np.float32(100) + np.where(x == y, first, second)
    np.testing.assert_array_equal(launched(emit, shape, a, b, c, d), exact)


REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    ("okk_bdc_add", (0, 0, 0, (1, 0, 1, 1), None, None, None), "shape must be in [1, 65535]"),
    ("okk_bdc_add", (0, 0x80000, 0, (1, 1, 1, 1), None, None, None), "must begin in the same lane"),
    ("okk_bdc_add", (0, 0, 2, (1, 1, 1, 1), None, None, None), "src1 must begin at a multiple of 4 bytes"),
    ("okk_bdc_add", (0, 0, 0, (1, 1, 400, 400), None, None, None), "ends at byte 640000 of its lane"),
    ("okk_bdc_add_C", (0, 0, "one", (1, 1, 1, 1), None, None), "C must be a number"),
    ("okk_bdc_32bit_set_C", (0, 1.0, (1, 1, 1, 1), None), "write x32(fp32=1.0)"),
    ("okk_bdc_exp", (0, 0x4000, 0x4000, (1, 1, 1, 1)), "work_addr must be neither"),
    ("okk_bdc_exp", (4, 0x4000, 0x8000, (1, 1, 1, 1)), "dst must begin at a multiple of 128 bytes"),
    ("okk_bdc_taylor_exp", (0, 0, (1, 1, 1, 1), 65), "num_series must be in [1, 64]"),
    (
        "okk_bdc_equal_select",
        (0, (True, 0), (False, 1.0), (False, 1), (False, 2), (1, 1, 1, 1)),
        "dst must be none of src0, src1 and select1",
    ),
    (
        "okk_bdc_greater_select",
        (0, (True, 0x4004), (False, 1.0), (False, 1), (False, 2), (1, 1, 1, 1)),
        "src0 must begin at a multiple of 128 bytes",
    ),
    ("okk_bdc_greater_select", (0, 1.0, (False, 1.0), (False, 1), (False, 2), (1, 1, 1, 1)), "is a pair (is_addr,"),
    ("okk_bdc_max_pool2d", (0, 0x4000, (1, 1, 2, 2), 3, 3, None, None), "must fit into the padded image"),
    ("okk_bdc_max_pool2d", (0, 0x4000, (1, 1, 2, 2), 1, 1, (16, 0, 0, 0), None), "padding must be in [0, 15]"),
    ("okk_gdma_32bit_cpy_S2L", (0, 5, (1, 1, 1, 1), None, None), "src_addr is a C system_addr_t"),
    ("okk_gdma_32bit_cpy_S2L", (0, 1 << 32, (1, 1, 1, 1), None, (4, 3, 2, 2)), "strides of w must be 1"),
    ("okk_gdma_32bit_matrix_L2S", (1 << 32, 0, 2, 9, 3, 8), "row_stride must be at least cols"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "said"), REFUSED)
def test_refusals_name_the_function_and_the_rule(name: str, arguments: tuple[Any, ...], said: str) -> None:
    with recording() as recorded, pytest.raises(UsageError) as error:
        FUNCTIONS[name](*arguments)
    assert error.value.reason.startswith(f"{name}: ") and said in error.value.reason
    assert not recorded.groups()


def test_what_is_not_offered_says_why() -> None:
    with pytest.raises(UsageError, match="packed numbers of 8 and 16 bits are not offered"):
        okk_bdc_fixed_point_packed_add(0, 0, 0)
    with pytest.raises(UsageError, match="recorded before its commands run"):
        okk_global_mem_addr(0)
    with pytest.raises(UsageError, match="called inside a kernel"):
        okk_initialize()
    assert not UNAVAILABLE.keys() & FUNCTIONS.keys()


def test_faults_of_the_chip_name_the_call() -> None:
    @kernel
    def outside() -> None:
        okk_gdma_32bit_cpy_S2L(A, GLOBAL_MEM_START + (1 << 30), SHAPE, None, None)

    with pytest.raises(SimulatorError, match=r"okk_gdma_32bit_cpy_S2L at test_okkernel_kernels.py:\d+: "):
        OkkernelDevice(1 << 20).launch(outside())
