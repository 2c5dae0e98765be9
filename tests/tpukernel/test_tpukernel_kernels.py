"""Kernels as a user writes them: recorded, run on the device, with local memory by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bmcompiler.bmodel import save
from bmcompiler.errors import BMError, SimulatorError, UsageError
from bmcompiler.runtime import Session
from bmcompiler.runtime.bm1684x_kernels import KernelDevice
from bmcompiler.tpukernel import (
    DT_FP32,
    DT_UINT8,
    FUNCTIONS,
    GLOBAL_MEM_START,
    LOCAL_MEM_SIZE,
    NPU_NUM,
    LocalMemory,
    Placed,
    compact,
    dim4,
    kernel,
    model_of,
    scalar_t,
)

call = type("call", (), {name.removeprefix("tpu_"): staticmethod(function) for name, function in FUNCTIONS.items()})


@pytest.fixture
def device() -> KernelDevice:
    return KernelDevice(1 << 22)


@kernel
def scaled(dst: int, src: int, shape: dim4, tiles: int, factor: float) -> None:
    """dst = src * factor, tile by tile; loads and stores run beside the arithmetic."""
    memory = LocalMemory()
    places = [memory.alloc(shape, DT_FP32, bank=True) for _ in range(2)]
    step = 4 * shape.n * shape.c * shape.h * shape.w
    call.initialize()
    for tile in range(tiles + 2):
        call.parallel_start()
        if 0 <= tile - 2 < tiles:
            call.gdma_cpy_L2S(dst + (tile - 2) * step, places[tile % 2], shape, None, None, DT_FP32)
        if tile < tiles:
            call.gdma_cpy_S2L(places[tile % 2], src + tile * step, shape, None, None, DT_FP32)
        if 0 <= tile - 1 < tiles:
            place = places[(tile - 1) % 2]
            call.bdc_fp_mul_C(place, place, scalar_t(f32=factor), shape, None, None, DT_FP32)
        call.parallel_end()
    call.poll()


def test_a_kernel_is_known_by_its_function() -> None:
    def plain(size: int) -> None:
        """What it does."""

    made = kernel(plain)
    assert (made.__doc__, made.__wrapped__, made.name) == ("What it does.", plain, "plain")
    assert not hasattr(plain, "__wrapped__")


def test_a_double_buffered_kernel(device: KernelDevice) -> None:
    shape, tiles = dim4(1, 64, 4, 8), 5
    x = np.random.default_rng(0).normal(size=(tiles, 64, 4, 8)).astype(np.float32)
    source = device.upload(x)
    target = device.malloc(x.nbytes)
    device.launch(scaled(target, source, shape, tiles, 2.5))
    np.testing.assert_array_equal(device.download(target, x.shape), x * np.float32(2.5))


def test_exp_by_table_is_exact_where_the_power_of_two_form_is_not(device: KernelDevice) -> None:
    """Beyond the limits both are infinite or 0; the error stays below one that the power-of-two form has."""
    shape = dim4(1, 64, 1, 64)
    x = np.linspace(-110, 92, 64 * 64, dtype=np.float32).reshape(shape)
    x[0, 0, 0, :4] = [np.inf, -np.inf, np.nan, 1e30]
    source = device.upload(x)

    @kernel
    def run() -> None:
        coeff, table = 0x8000, 0x9000
        call.bdc_load_fp32_exp_coeff(coeff)
        call.bdc_load_fp32_exp_table(table)
        call.gdma_cpy_S2L(0, source, shape, None, None, DT_FP32)
        call.bdc_fp32_exp_by_table(0x4000, 0, 0x10000, 0x14000, coeff, table, shape)

    device.launch(run())
    found = device.local(0x4000, shape, DT_FP32).astype(np.float64)
    with np.errstate(over="ignore"):
        wanted = np.exp(x.astype(np.float64))
    assert found[0, 0, 0, :4].tolist() == [np.inf, 0, 0, np.inf]
    normal = (wanted > 2.0**-126) & (wanted < 2.0**128) & np.isfinite(x)
    assert np.max(abs(found[normal] / wanted[normal] - 1)) < 1e-6
    assert (found[wanted >= 2.0**128] == np.inf).all()


@kernel
def careless(dst: int, src: int, shape: dim4) -> None:
    """Stores what is still being computed."""
    call.gdma_cpy_S2L(0, src, shape, None, None, DT_FP32)
    call.parallel_start()
    call.bdc_abs(0, 0, shape, None, None, DT_FP32)
    call.gdma_cpy_L2S(dst, 0, shape, None, None, DT_FP32)
    call.parallel_end()


def test_kernels_are_timed_and_checked_for_races(device: KernelDevice) -> None:
    shape, tiles = dim4(1, 64, 32, 64), 4
    source, target = device.malloc(1 << 21), device.malloc(1 << 21)
    overlapped = device.analyze(scaled(target, source, shape, tiles, 2.0))
    alone = device.analyze(scaled(target, source, shape, 1, 2.0)).timing().cycles
    assert not overlapped.races()
    assert alone < overlapped.timing().cycles < tiles * alone
    (race,) = device.analyze(careless(target, source, shape)).races()
    assert {race.first.name, race.second.name} == {"ar.abs", "dma.tensor.copy"}
    assert '"ar.mul"' in overlapped.trace()


def test_a_kernel_is_a_model_like_any_other(tmp_path: Path) -> None:
    shape, tiles, first = dim4(1, 64, 2, 3), 3, GLOBAL_MEM_START
    x = np.random.default_rng(1).normal(size=(tiles, 64, 2, 3)).astype(np.float32)
    program = scaled(first + x.nbytes, first, shape, tiles, 3.0)
    model = model_of(program, {"x": Placed(first, x.shape)}, {"y": Placed(first + x.nbytes, x.shape)})
    save(model, tmp_path / "scaled.bmodel")
    np.testing.assert_array_equal(Session(tmp_path / "scaled.bmodel").run({"x": x})["y"], x * np.float32(3))
    with pytest.raises(UsageError, match="a model of scaled needs an input and an output"):
        model_of(program, {}, {"y": Placed(first, (1,))})
    with pytest.raises(UsageError, match="x is no array in global memory"):
        model_of(program, {"x": Placed(64, (1,))}, {"y": Placed(first, (1,))})


def test_local_memory_by_name() -> None:
    memory = LocalMemory(end=4096)
    first = memory.alloc((1, 64, 3, 7), DT_FP32)
    second = memory.alloc((1, 70, 1, 1), DT_UINT8, lane=5, layout=compact)
    assert (first, second) == (0, 5 * LOCAL_MEM_SIZE + 128)
    memory.free(first)
    assert memory.alloc_bytes(100) == 0 and memory.alloc_bytes(100) == 192
    with pytest.raises(UsageError, match="320 of 4096 are taken"):
        memory.alloc_bytes(4000)
    with pytest.raises(UsageError, match="0x400 is not the address of anything"):
        memory.free(0x400)
    assert LocalMemory(begin=100).alloc_bytes(1, bank=True) == 1 << 14


def test_local_memory_is_given_out_to_its_end() -> None:
    memory = LocalMemory(end=4096)
    assert memory.alloc_bytes(4096) == 0
    memory.free(0)
    assert memory.alloc((3, 64, 8, 8), DT_FP32) == 0 and memory.alloc_bytes(1) == 3 * 256
    assert memory.alloc((1, 1, 1, 1), DT_FP32, lane=63) // LOCAL_MEM_SIZE == 63
    for lane in (-1, 64):
        with pytest.raises(UsageError, match="is none of the lanes 0 to 63"):
            memory.alloc((1, 1, 1, 1), DT_FP32, lane=lane)


def test_releases_differ_in_what_loaders_write(device: KernelDevice) -> None:
    def load() -> None:
        call.bdc_load_fp32_exp_coeff(0)

    words = {}
    for release in ("seed", "measured"):
        fresh = KernelDevice(1 << 12)
        fresh.launch(kernel(release=release)(load)())
        words[release] = np.count_nonzero(fresh.local(0, (1, NPU_NUM, 1, 32), DT_FP32)[0, 63])
    assert words == {"seed": 32, "measured": 10}


ERRORS: list[tuple[Any, str]] = [
    (lambda device: kernel(release="newest")(lambda: None)(), "there is no release 'newest': seed, measured"),
    (lambda device: kernel(call.parallel_start)(), "ends in parallel state.*tpu_parallel_end"),
    (lambda device: kernel(call.parallel_end)(), "tpu_parallel_end: no parallel state has begun"),
    (lambda device: device.malloc(1 << 30), "of global memory are left"),
    (lambda device: device.download(64, (1,)), "0x40 and 4 bytes from there are no global memory"),
]


@pytest.mark.parametrize(("run", "message"), ERRORS)
def test_errors_say_what_to_do(device: KernelDevice, run: Any, message: str) -> None:
    with pytest.raises(BMError, match=message):
        run(device)


def test_an_index_outside_of_its_table_is_refused(device: KernelDevice) -> None:
    """The seed's note on the range of indices can only be checked when the kernel runs."""

    @kernel
    def run() -> None:
        call.bdc_set_C(0, 200, (1, 64, 1, 1), None, DT_UINT8)
        call.bdc_table_lookup(0x1000, 0, 0x2000, (1, 64, 1, 1), 100, DT_FP32, DT_UINT8)

    with pytest.raises(SimulatorError, match="TIU command 1"):
        device.launch(run())


def test_addresses_outside_of_global_memory_are_refused(device: KernelDevice) -> None:
    @kernel
    def run() -> None:
        call.gdma_cpy_S2L(0, 0x2_0000_0000, (1, 1, 1, 1), None, None, DT_FP32)

    with pytest.raises(SimulatorError, match="GDMA command 0"):
        device.launch(run())
