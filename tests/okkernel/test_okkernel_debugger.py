"""Checked launches, and launches that halt, of kernels for the BM1684."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.errors import RuntimeUseError
from bmcompiler.okkernel import Kernel as OkKernel
from bmcompiler.okkernel import (
    Program,
    dim4,
    kernel,
    okk_bdc_mul_C,
    okk_gdma_32bit_cpy_L2S,
    okk_gdma_32bit_cpy_S2L,
    okk_initialize,
    okk_parallel_end,
    okk_parallel_start,
)
from bmcompiler.runtime.bm1684_kernels import OkkernelDevice

SHAPE = dim4(1, 64, 1, 32)


@kernel
def quadrupled(dst: int, src: int) -> None:
    okk_initialize()
    okk_gdma_32bit_cpy_S2L(0, src, SHAPE, None, None)
    okk_bdc_mul_C(0, 0, 2.0, SHAPE, None, None)
    okk_bdc_mul_C(0, 0, 2.0, SHAPE, None, None)
    okk_gdma_32bit_cpy_L2S(dst, 0, SHAPE, None, None)


@kernel
def racing(dst: int, src: int) -> None:
    """It stores what is not computed yet."""
    okk_gdma_32bit_cpy_S2L(0, src, SHAPE, None, None)
    okk_parallel_start()
    okk_bdc_mul_C(0, 0, 2.0, SHAPE, None, None)
    okk_gdma_32bit_cpy_L2S(dst, 0, SHAPE, None, None)
    okk_parallel_end()


@kernel
def unwritten(dst: int, src: int) -> None:
    """It reads 128 bytes of each lane, of which 64 were loaded."""
    okk_gdma_32bit_cpy_S2L(0, src, dim4(1, 64, 1, 16), None, None)
    okk_bdc_mul_C(0, 0, 2.0, SHAPE, None, None)


def made(function: OkKernel) -> tuple[OkkernelDevice, Program, int, np.ndarray]:
    device, x = OkkernelDevice(1 << 16), np.arange(2048, dtype=np.float32)
    source, target = device.upload(x), device.malloc(x.nbytes)
    return device, function(target, source), target, x


def test_a_checked_launch_names_the_calls_that_race() -> None:
    device, program, _, _ = made(racing)
    with pytest.raises(RuntimeUseError) as error:
        device.launch(program, check=True)
    for call in ("okk_bdc_mul_C at test_okkernel_debugger.py:", "okk_gdma_32bit_cpy_L2S at test_okkernel_debugger.py:"):
        assert call in str(error.value)


def test_a_checked_launch_names_the_call_that_reads_what_nobody_wrote() -> None:
    device, program, _, _ = made(unwritten)
    with pytest.raises(RuntimeUseError, match=r"okk_bdc_mul_C at .* reads .*: lane 0, byte 64 and more"):
        device.launch(program, check=True)


def test_a_checked_launch_runs_a_sound_kernel() -> None:
    device, program, target, x = made(quadrupled)
    device.launch(program, check=True)
    np.testing.assert_array_equal(device.download(target, x.shape), 4 * x)


def test_a_launch_halts_at_calls_and_shows_memory_between() -> None:
    device, program, target, x = made(quadrupled)
    running = device.debug(program)
    halted = running.run("okk_bdc_mul_C")
    assert halted is not None and halted.function == "okk_bdc_mul_C"
    np.testing.assert_array_equal(device.local(0, SHAPE).ravel(), x)
    assert running.step() is not None
    np.testing.assert_array_equal(device.local(0, SHAPE).ravel(), 2 * x)
    halted = running.run("okk_gdma_32bit_cpy_L2S")
    assert halted is not None and not device.download(target, x.shape).any()
    assert running.run(halted.line) is None and running.done == len(running)
    np.testing.assert_array_equal(device.download(target, x.shape), 4 * x)
