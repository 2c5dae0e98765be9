"""Calls and lines of a kernel in errors, reports and disassembly; checked launches; launches that halt."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.backends.bm1684x.asm import assemble
from bmcompiler.errors import RuntimeUseError, SimulatorError
from bmcompiler.runtime.bm1684x_kernels import KernelDevice
from bmcompiler.tpukernel import DT_FP32, FUNCTIONS, Kernel, Program, dim4, kernel, scalar_t

SHAPE = dim4(1, 64, 1, 32)
initialize, load, store = (FUNCTIONS[f"tpu_{name}"] for name in ("initialize", "gdma_cpy_S2L", "gdma_cpy_L2S"))
scale, begin, end = (FUNCTIONS[f"tpu_{name}"] for name in ("bdc_fp_mul_C", "parallel_start", "parallel_end"))
TWO = scalar_t(f32=2.0)


@kernel
def quadrupled(dst: int, src: int) -> None:
    """Four times src, in two runs of ids."""
    initialize()
    load(0, src, SHAPE, None, None, DT_FP32)
    scale(0, 0, TWO, SHAPE, None, None, DT_FP32)
    initialize()
    scale(0, 0, TWO, SHAPE, None, None, DT_FP32)
    store(dst, 0, SHAPE, None, None, DT_FP32)


@kernel
def racing(dst: int, src: int) -> None:
    """It stores what is not computed yet."""
    load(0, src, SHAPE, None, None, DT_FP32)
    begin()
    scale(0, 0, TWO, SHAPE, None, None, DT_FP32)
    store(dst, 0, SHAPE, None, None, DT_FP32)
    end()


@kernel
def unwritten(dst: int, src: int) -> None:
    """It reads 128 bytes of each lane, of which 64 were loaded."""
    load(0, src, dim4(1, 64, 1, 16), None, None, DT_FP32)
    scale(0, 0, TWO, SHAPE, None, None, DT_FP32)


def made(function: Kernel) -> tuple[KernelDevice, Program, int, np.ndarray]:
    device, x = KernelDevice(1 << 16), np.arange(2048, dtype=np.float32)
    source, target = device.upload(x), device.malloc(x.nbytes)
    return device, function(target, source), target, x


def line_of(text: str, function: Kernel) -> str:
    """Where a kernel says `text` first."""
    import inspect

    lines, first = inspect.getsourcelines(function.__wrapped__)  # type: ignore[attr-defined]
    at = first + next(number for number, line in enumerate(lines) if text in line)
    return f"test_tpukernel_debugger.py:{at}"


def test_cycles_and_disassembly_are_by_call_and_line() -> None:
    device, program, _, _ = made(quadrupled)
    layers = {layer.name: layer.cycles for layer in device.analyze(program).timing().layers}
    loading = f"tpu_gdma_cpy_S2L at {line_of('load(', quadrupled)}"
    assert layers[loading] > layers[f"tpu_bdc_fp_mul_C at {line_of('scale(', quadrupled)}"] > 0
    assert len(layers) == 5  # and the end of the first run of ids
    text = program.disassembly()
    assert [line.split("  # ")[1] for line in text.splitlines() if "S2L" in line] == [loading]
    assert text.count(" # ") == 4
    assert assemble(text) == program.groups


def test_a_checked_launch_names_the_calls_that_race() -> None:
    device, program, _, _ = made(racing)
    with pytest.raises(RuntimeUseError) as error:
        device.launch(program, check=True)
    for call in (f"tpu_bdc_fp_mul_C at {line_of('scale(', racing)}", f"cpy_L2S at {line_of('store(', racing)}"):
        assert call in str(error.value)


def test_a_checked_launch_names_the_call_that_reads_what_nobody_wrote() -> None:
    device, program, _, _ = made(unwritten)
    with pytest.raises(RuntimeUseError, match=rf"{line_of('scale(', unwritten)}.* lane 0, byte 64 and more"):
        device.launch(program, check=True)


def test_a_checked_launch_runs_a_sound_kernel() -> None:
    device, program, target, x = made(quadrupled)
    device.launch(program, check=True)
    np.testing.assert_array_equal(device.download(target, x.shape), 4 * x)


def test_a_launch_halts_at_calls_and_lines_and_shows_memory_between() -> None:
    device, program, target, x = made(quadrupled)
    running = device.debug(program)
    halted = running.run("tpu_bdc_fp_mul_C")
    assert halted is not None and halted.function == "tpu_bdc_fp_mul_C"
    np.testing.assert_array_equal(device.local(0, SHAPE, DT_FP32).ravel(), x)
    running.step()
    np.testing.assert_array_equal(device.local(0, SHAPE, DT_FP32).ravel(), 2 * x)
    halted = running.run(int(line_of("store(", quadrupled).split(":")[1]))
    assert halted is not None and halted.function == "tpu_gdma_cpy_L2S"
    assert not device.download(target, x.shape).any()
    assert running.run() is None and running.done == len(running)
    np.testing.assert_array_equal(device.download(target, x.shape), 4 * x)


def test_what_the_chip_refuses_names_call_and_line() -> None:
    device = KernelDevice(1 << 16)
    program = quadrupled(device.malloc(8192), 0x1_0000_0000 + (1 << 20))
    with pytest.raises(SimulatorError, match=rf"^tpu_gdma_cpy_S2L at {line_of('load(', quadrupled)}: group 0, GDMA"):
        device.launch(program)
