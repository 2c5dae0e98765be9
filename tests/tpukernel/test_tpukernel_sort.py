"""The sort engine in kernels: polls order it with the others, and races, the debugger, times and text know it."""

from __future__ import annotations

import numpy as np
import pytest

from bmcompiler.backends.bm1684x.asm import assemble
from bmcompiler.errors import RuntimeUseError, UsageError
from bmcompiler.instructions.order import Engine
from bmcompiler.runtime.bm1684x_kernels import KernelDevice
from bmcompiler.tpukernel import (
    DT_FP16,
    DT_FP32,
    DT_INT32,
    Placed,
    Program,
    dim4,
    kernel,
    model_of,
    recording,
    scalar_t,
    tpu_bdc_fp_mul_C,
    tpu_gdma_cpy_L2S,
    tpu_gdma_cpy_S2L,
    tpu_gdma_h_gather_S2S,
    tpu_hau_poll,
    tpu_hau_sort,
    tpu_hau_sort_natural_index,
    tpu_hau_sort_specific_index,
    tpu_initialize,
    tpu_poll,
)

COUNT, KEPT = 40, 7


@kernel
def ranked(
    values: int, places: int, given: int, shape: dim4, before: bool = True, after: bool = True, largest: bool = True
) -> None:
    """The largest numbers of twice what is given, and twice these."""
    tpu_initialize()
    tpu_gdma_cpy_S2L(0, given, shape, None, None, DT_FP32)
    tpu_bdc_fp_mul_C(0, 0, scalar_t(f32=2.0), shape, None, None, DT_FP32)
    tpu_gdma_cpy_L2S(given, 0, shape, None, None, DT_FP32)
    if before:
        tpu_poll()
    tpu_hau_sort_natural_index(values, places, given, COUNT, KEPT, largest, DT_FP32)
    if after:
        tpu_hau_poll()
    kept = dim4(1, 1, 1, KEPT)
    tpu_gdma_cpy_S2L(0, values, kept, None, None, DT_FP32)
    tpu_bdc_fp_mul_C(0, 0, scalar_t(f32=2.0), kept, None, None, DT_FP32)
    tpu_gdma_cpy_L2S(values, 0, kept, None, None, DT_FP32)
    tpu_poll()


@pytest.fixture(scope="module")
def device() -> KernelDevice:
    return KernelDevice(1 << 16)


def program(device: KernelDevice, given: int = 0x1_0000_0000, **how: bool) -> Program:
    return ranked(0x1_0000_1000, 0x1_0000_2000, given, dim4(1, 1, 1, COUNT), **how)


def test_a_kernel_sorts_between_two_polls(device: KernelDevice) -> None:
    numbers = np.random.default_rng(1).integers(-9, 9, COUNT).astype(np.float32)
    for largest in (True, False):
        given = device.upload(numbers, 0x1_0000_0000)
        device.launch(program(device, given, largest=largest), check=True)
        places = np.argsort(-numbers if largest else numbers, kind="stable")[:KEPT]
        np.testing.assert_array_equal(device.download(0x1_0000_1000, (KEPT,)), 4 * numbers[places])
        np.testing.assert_array_equal(device.download(0x1_0000_2000, (KEPT,), np.int32), places)


@pytest.mark.parametrize(
    "missing, said", [("before", "the first writes and the second reads"), ("after", "the first reads")]
)
def test_a_sort_that_no_poll_orders_races(device: KernelDevice, missing: str, said: str) -> None:
    found = device.analyze(program(device, **{missing: False})).races()
    assert any({one.first.engine, one.second.engine} == {"GDMA", "HAU"} for one in found)
    with pytest.raises(RuntimeUseError, match=r"tpu_hau_sort_natural_index at test_tpukernel_sort\.py"):
        device.launch(program(device, **{missing: False}), check=True)


def test_times_and_traces_have_the_engine(device: KernelDevice) -> None:
    analysis = device.analyze(program(device))
    (use,) = (each for each in analysis.timing().engines if each.name == "HAU")
    assert (use.commands, use.busy) == (1, 2 * (900 + (COUNT - 64) // 8))
    assert '"HAU"' in analysis.trace()
    assert {each.name for each in device.analyze(ranked_nothing()).timing().engines} == {"TIU", "GDMA"}


@kernel
def ranked_nothing() -> None:
    tpu_initialize()
    tpu_gdma_cpy_S2L(0, 0x1_0000_0000, dim4(1, 1, 1, 4), None, None, DT_FP32)
    tpu_poll()


def test_the_text_of_a_program_gives_it_back(device: KernelDevice) -> None:
    made = program(device)
    (group,) = assemble(made.disassembly())
    assert group == made.groups[0]
    assert group.polled == made.groups[0].polled
    assert len(group.polled.hau) == 144


def test_a_launch_halts_before_the_sort(device: KernelDevice) -> None:
    launch = device.debug(program(device))
    source = launch.run("tpu_hau_sort_natural_index")
    assert source is not None and source.function == "tpu_hau_sort_natural_index"
    before = device.download(0x1_0000_2000, (KEPT,), np.int32).copy()
    device.upload(before + 100, 0x1_0000_2000)
    launch.step()
    assert (device.download(0x1_0000_2000, (KEPT,), np.int32) < 100).all()
    launch.run()


def test_model_files_hold_no_sort(device: KernelDevice) -> None:
    made = program(device)
    with pytest.raises(UsageError, match="model files hold no commands of the sort engine"):
        model_of(made, {"x": Placed(0x1_0000_0000, (COUNT,))}, {"y": Placed(0x1_0000_1000, (KEPT,))})


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((0x1_0000_0002, 0x1_0000_0000, 4, 4, True, DT_FP32), "multiples of 4"),
        ((1 << 40, 0x1_0000_0000, 4, 4, True, DT_FP32), "to 0xffffffffff"),
        ((0x1_0000_1000, 0x1_0000_0000, 4, 5, True, DT_FP32), "K must be in"),
        ((0x1_0000_1000, 0x1_0000_0000, 4, 0, True, DT_FP32), "K must be in"),
        ((0x1_0000_1000, 0x1_0000_0000, 4, 4, True, DT_FP16), "dtype must be"),
    ],
)
def test_what_the_engine_cannot_do_is_refused(arguments: tuple[int, ...], said: str) -> None:
    with recording(), pytest.raises(UsageError, match=said):
        tpu_hau_sort(*arguments)


@kernel
def lines(result: int, table: int, index: int, count: int, length: int, known: int) -> None:
    tpu_initialize()
    shape = dim4(1, 1, count, length)
    filling = scalar_t(u32=7777)
    tpu_gdma_h_gather_S2S(result, table, index, False, filling, shape, known, None, None, None, DT_INT32)
    tpu_poll()


@pytest.mark.parametrize(
    "start, end, first",  # recorded of tpu_hau_line_gather: 10 lines of 3 words of a table of 20, filled with 7777
    [
        (0, 9, [0, 3, 6, 9, 24, 27, 7777, 7777, 7777, 7777]),
        (2, 9, [7777, 7777, 0, 3, 18, 21, 7777, 7777, 7777, 7777]),
        (2, 19, [7777, 7777, 0, 3, 18, 21, 24, 51, 7777, 7777]),
    ],
)
def test_the_gather_that_stands_for_that_of_lines(device: KernelDevice, start: int, end: int, first: list[int]) -> None:
    table = np.arange(60, dtype=np.int32).reshape(20, 3)
    index = np.array([0, 1, 2, 3, 8, 9, 10, 19, 20, 25], np.uint32) - np.uint32(start)
    places = device.upload(table, 0x1_0000_0000), device.upload(index, 0x1_0000_1000)
    device.launch(lines(0x1_0000_2000, *places, 10, 3, end - start + 1))
    np.testing.assert_array_equal(device.download(0x1_0000_2000, (10, 3), np.int32)[:, 0], first)


def test_addresses_of_sorts_have_40_bits() -> None:
    places = [0x12_3456_7890 + 0x11_0000_0010 * each for each in range(4)]
    with recording() as recorder:
        tpu_hau_sort_specific_index(*places, 4, 4, False, DT_INT32)
    (command,) = recorder.commands
    fields = command.command.layout.unpack(command.data)
    names = ("dst", "dst_index", "src", "src_index")
    assert [fields[f"{name}_addr_lo"] | fields[f"{name}_addr_hi"] << 32 for name in names] == places
    assert command.engine is Engine.HAU
