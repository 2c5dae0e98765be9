"""The driver interface: handles, memory, command lists, packers (seed: dmp_dv.h; dv.md 6)."""

from __future__ import annotations

import ctypes
import errno
import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from dv_data import halves
from dv_device import Board, board

from bmcompiler.backends.dv.chip import DvChip
from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, FcCommand, Pair, Run
from bmcompiler.backends.dv.driver.structs import CONV_V0, INFO_V0
from bmcompiler.backends.dv.formats.packing import pack_conv
from bmcompiler.runtime import dmp_dv as dv

COPY = Run(m=8, pool_enable=2, pool_size=Pair(1, 1), pool_avg_param=0x3C00)


def copy_command(on: Board, values: float = 1.0) -> tuple[bytes, Buf]:
    """A command that copies an 8 x 8 x 8 map, and its output."""
    source, target = on.put_map(np.full((1, 8, 8, 8), values)), on.room(1024)
    return ConvCommand(8, 8, 8, (COPY,), input_buf=source, output_buf=target).encode(), target


def message() -> str:
    return dv.dmp_dv_get_last_error_message()


def test_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d{8}", dv.dmp_dv_get_version_string())


def test_null_is_ignored_or_an_error() -> None:
    assert dv.dmp_dv_context_release(None) == dv.dmp_dv_context_retain(None) == 0
    assert dv.dmp_dv_mem_release(None) == dv.dmp_dv_mem_retain(None) == 0
    assert dv.dmp_dv_cmdlist_release(None) == dv.dmp_dv_cmdlist_retain(None) == 0
    assert dv.dmp_dv_mem_alloc(None, 16) is None and message() == "ctx is NULL"
    assert dv.dmp_dv_cmdlist_create(None) is None
    assert dv.dmp_dv_mem_map(None) is None and message() == "mem is NULL"
    assert dv.dmp_dv_mem_get_size(None) == 0
    assert dv.dmp_dv_context_get_info_string(None) is None
    assert dv.dmp_dv_context_get_info(None, dv.new_info()) == errno.EINVAL
    assert dv.dmp_dv_mem_sync_start(None, 1, 1) == dv.dmp_dv_mem_sync_end(None) == errno.EINVAL
    assert dv.dmp_dv_mem_to_device(None, 0, 0) == dv.dmp_dv_mem_to_cpu(None, 0, 0) == errno.EINVAL
    assert dv.dmp_dv_cmdlist_commit(None) == dv.dmp_dv_cmdlist_wait(None, 1) == errno.EINVAL
    assert dv.dmp_dv_cmdlist_add_raw(None, b"") == errno.EINVAL
    assert dv.dmp_dv_cmdlist_exec(None) == -errno.EINVAL
    assert dv.dmp_dv_cmdlist_get_last_exec_time(None) == -1
    assert dv.dmp_dv_fpga_device_exists(None, 1) == -1
    dv.dmp_dv_mem_unmap(None)
    assert message() == "mem is NULL"


@pytest.mark.parametrize("make", [lambda: np.zeros(1, INFO_V0), ctypes.c_uint8 * 32, lambda: bytearray(32)])
def test_info(make: Callable[[], object]) -> None:
    ctx = dv.dmp_dv_context_create(DvChip(ub_size=1 << 20, fc_freq=77))
    info = make()
    fields = np.frombuffer(info, INFO_V0)  # type: ignore[call-overload]
    assert dv.dmp_dv_context_get_info(ctx, info) == -1  # size 0
    for size, filled in ((8, 0), (31, 0), (32, 1 << 20), (64, 1 << 20)):
        fields["header"]["size"], fields["header"]["version"] = size, 9
        assert dv.dmp_dv_context_get_info(ctx, info) == 0
        assert (fields["header"]["version"][0], fields["ub_size"][0]) == (0, filled)
    assert (fields["max_kernel_size"][0], fields["fc_freq"][0], fields["max_fc_vector_size"][0]) == (7, 77, 16384)
    assert dv.dmp_dv_context_get_info(ctx, None) == errno.EINVAL
    text = dv.dmp_dv_context_get_info_string(ctx)
    assert text and all(word in text for word in ("ub_size=1048576", "conv_freq", "fc_freq=77", "max_fc_vector_size"))
    assert dv.dmp_dv_context_release(ctx) == 0


def test_blocks_of_the_device() -> None:
    ctx = dv.dmp_dv_context_create(DvChip(fc_freq=0))
    assert [dv.dmp_dv_fpga_device_exists(ctx, kind) for kind in range(6)] == [-1, 1, 0, 0, -1, -1]
    dv.dmp_dv_context_release(ctx)


def test_counters() -> None:
    ctx = dv.dmp_dv_context_create()
    assert dv.dmp_dv_context_retain(ctx) == 2
    mem = dv.dmp_dv_mem_alloc(ctx, 100)
    assert dv.dmp_dv_context_release(ctx) == 2  # one of ours, one of the memory
    assert dv.dmp_dv_context_release(ctx) == 1
    assert dv.dmp_dv_mem_map(mem) is not None  # the memory keeps the context
    assert dv.dmp_dv_mem_release(mem) == 0
    assert dv.dmp_dv_mem_map(mem) is None and message() == "mem has been released"
    assert dv.dmp_dv_mem_release(mem) == 0
    assert dv.dmp_dv_mem_alloc(ctx, 100) is None and message() == "ctx has been released"


def test_lists_keep_their_memory() -> None:
    before = dv.dmp_dv_mem_get_total_size()
    on = Board()
    command, target = copy_command(on, 3.0)
    cmdlist = on.list_of(command)
    assert dv.dmp_dv_mem_release(on.mem) == 1
    assert dv.dmp_dv_cmdlist_commit(cmdlist) == 0
    assert dv.dmp_dv_cmdlist_wait(cmdlist, dv.dmp_dv_cmdlist_exec(cmdlist)) == 0
    assert on.data[target.offs : target.offs + 2].view(np.float16)[0] == 3
    assert dv.dmp_dv_cmdlist_release(cmdlist) == 0
    assert dv.dmp_dv_context_release(on.ctx) == 0
    assert dv.dmp_dv_mem_get_total_size() == before


def test_memory() -> None:
    before = dv.dmp_dv_mem_get_total_size()
    with board() as on:
        assert dv.dmp_dv_mem_alloc(on.ctx, 0) is None and dv.dmp_dv_mem_alloc(on.ctx, 1 << 32) is None
        mem = dv.dmp_dv_mem_alloc(on.ctx, 5000)
        assert dv.dmp_dv_mem_get_size(mem) == 8192
        assert dv.dmp_dv_mem_get_total_size() == before + (1 << 22) + 8192
        assert dv.dmp_dv_mem_sync_start(mem, 1, 1) == errno.EINVAL and message() == "mem is not mapped"
        assert dv.dmp_dv_mem_to_device(mem, 0, 16) == errno.EINVAL
        data = dv.dmp_dv_mem_map(mem)
        assert data is not None and data is dv.dmp_dv_mem_map(mem)
        assert data.size == 8192 and not data.any() and data.ctypes.data % 4096 == 0
        assert dv.dmp_dv_mem_sync_start(mem, 0, 0) == errno.EINVAL
        assert dv.dmp_dv_mem_sync_start(mem, 1, 1) == 0
        assert dv.dmp_dv_mem_sync_start(mem, 1, 0) == 0
        assert dv.dmp_dv_mem_sync_end(mem) == dv.dmp_dv_mem_sync_end(mem) == 0
        assert dv.dmp_dv_mem_to_cpu(mem, 0, 8192) == 0 and dv.dmp_dv_mem_to_cpu(mem, 8192, 0) == 0
        assert dv.dmp_dv_mem_to_cpu(mem, 1, 8192) == errno.EINVAL
        assert dv.dmp_dv_mem_to_cpu(mem, 1, 8192, dv.MEM_CPU_HADNT_READ) == 0
        dv.dmp_dv_mem_unmap(mem)
        dv.dmp_dv_mem_unmap(mem)
        assert dv.dmp_dv_mem_sync_start(mem, 1, 0) == errno.EINVAL
        dv.dmp_dv_mem_release(mem)
    assert dv.dmp_dv_mem_get_total_size() == before


def test_last_error_message(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    dv.dmp_dv_set_last_error_message("%s is %d", "x", 3)
    assert message() == "x is 3" and not capsys.readouterr().err
    monkeypatch.setenv("VERBOSITY", "1")
    dv.dmp_dv_set_last_error_message("y" * 300)
    assert message() == "y" * 255 == capsys.readouterr().err.strip()


def test_states_of_a_list() -> None:
    with board() as on:
        empty = on.list_of()
        assert dv.dmp_dv_cmdlist_commit(empty) == errno.ENODATA
        assert dv.dmp_dv_cmdlist_add_raw(empty, None) == -1
        assert dv.dmp_dv_cmdlist_add_raw(empty, np.zeros(1, CONV_V0)) == errno.EINVAL
        assert dv.dmp_dv_cmdlist_commit(empty) == errno.EINVAL
        assert dv.dmp_dv_cmdlist_exec(empty) == -errno.EINVAL
        assert dv.dmp_dv_cmdlist_wait(empty, 1) == -1
        assert dv.dmp_dv_cmdlist_get_last_exec_time(empty) == -1
        dv.dmp_dv_cmdlist_release(empty)

        command, _ = copy_command(on)
        cmdlist = on.list_of(command, command)
        assert dv.dmp_dv_cmdlist_commit(cmdlist) == 0
        assert dv.dmp_dv_cmdlist_commit(cmdlist) == errno.EALREADY
        assert dv.dmp_dv_cmdlist_add_raw(cmdlist, command) == -1 and "committed already" in message()
        assert dv.dmp_dv_cmdlist_get_last_exec_time(cmdlist) == 0
        first, second = dv.dmp_dv_cmdlist_exec(cmdlist), dv.dmp_dv_cmdlist_exec(cmdlist)
        assert second == first + 1 > 1
        assert dv.dmp_dv_cmdlist_wait(cmdlist, second) == dv.dmp_dv_cmdlist_wait(cmdlist, first) == 0
        assert dv.dmp_dv_cmdlist_get_last_exec_time(cmdlist) > 0
        assert dv.dmp_dv_cmdlist_wait(cmdlist, -1) == errno.EINVAL
        assert dv.dmp_dv_cmdlist_wait(cmdlist, second + 1) == errno.EINVAL and "never scheduled" in message()
        dv.dmp_dv_cmdlist_release(cmdlist)


def test_lists_of_two_device_types_are_refused() -> None:
    with board() as on:
        conv, _ = copy_command(on)
        fc = FcCommand(4, 4, on.room(64), on.room(8), on.room(8)).encode()
        cmdlist = on.list_of(conv, fc)
        assert dv.dmp_dv_cmdlist_commit(cmdlist) == -1 and "several device types" in message()
        dv.dmp_dv_cmdlist_release(cmdlist)


def test_commands_are_copied_and_any_buffer_will_do() -> None:
    with board() as on:
        command, target = copy_command(on, 5.0)
        cmdlist = on.list_of()
        for form in (bytearray(command), np.frombuffer(bytearray(command), CONV_V0)):
            assert dv.dmp_dv_cmdlist_add_raw(cmdlist, form) == 0
            np.frombuffer(form, np.uint8)[:] = 0
        assert dv.dmp_dv_cmdlist_add_raw(cmdlist, command[:100]) == errno.EINVAL
        assert dv.dmp_dv_cmdlist_commit(cmdlist) == 0
        assert dv.dmp_dv_cmdlist_wait(cmdlist, dv.dmp_dv_cmdlist_exec(cmdlist)) == 0
        assert on.data[target.offs : target.offs + 2].view(np.float16)[0] == 5
        dv.dmp_dv_cmdlist_release(cmdlist)


def test_handles_in_commands_must_be_memory() -> None:
    with board() as on:
        command = ConvCommand.decode(copy_command(on)[0])
        cmdlist = on.list_of()
        for wrong in (12345, 1 << 60, on.ctx.value if on.ctx else 0):
            raw = replace(command, input_buf=Buf(wrong)).encode()
            assert dv.dmp_dv_cmdlist_add_raw(cmdlist, raw) == errno.EINVAL
            assert "is not a memory handle" in message()
        dv.dmp_dv_cmdlist_release(cmdlist)


def test_execution_is_asynchronous_and_in_order() -> None:
    """exec returns before the work is done; waiting for the last id implies all earlier ones."""
    random = np.random.default_rng(0)
    with board() as on:
        source = on.put_map(random.standard_normal((1, 64, 64, 64)))
        weights = on.put(pack_conv(halves(random.standard_normal((64, 64, 3, 3))), halves(np.zeros(64))))
        run = Run(m=64, weight_buf=weights, conv_enable=1, kernel=Pair(3, 3))
        slow = ConvCommand(64, 64, 64, (run,), input_buf=source, output_buf=on.room(62 * 62 * 128)).encode()
        cmdlist = on.list_of(*[slow] * 4)
        dv.dmp_dv_cmdlist_commit(cmdlist)
        shares = []
        for _ in range(5):  # other processes disturb measurements
            start = time.perf_counter()
            ids = [dv.dmp_dv_cmdlist_exec(cmdlist) for _ in range(3)]
            scheduled = time.perf_counter() - start
            assert dv.dmp_dv_cmdlist_wait(cmdlist, ids[-1]) == 0
            shares.append(scheduled / (time.perf_counter() - start))
            if shares[-1] < 0.5:
                break
        assert min(shares) < 0.5
        assert dv.dmp_dv_cmdlist_release(cmdlist) == 0


def test_a_list_lives_until_its_execution_has_finished() -> None:
    with board() as on:
        command, target = copy_command(on, 2.0)
        cmdlist, other = on.list_of(*[command] * 50), on.list_of(command)
        assert dv.dmp_dv_cmdlist_commit(cmdlist) == dv.dmp_dv_cmdlist_commit(other) == 0
        dv.dmp_dv_cmdlist_exec(cmdlist)
        dv.dmp_dv_cmdlist_release(cmdlist)
        assert dv.dmp_dv_cmdlist_wait(other, dv.dmp_dv_cmdlist_exec(other)) == 0
        assert on.data[target.offs : target.offs + 2].view(np.float16)[0] == 2
        dv.dmp_dv_cmdlist_release(other)


def test_eight_threads_at_once() -> None:
    """Own contexts, one shared list, packing and counters in parallel; every result is right."""
    before = dv.dmp_dv_mem_get_total_size()
    shared = Board()
    command, shared_target = copy_command(shared, 7.0)
    shared_list = shared.list_of(command)
    assert dv.dmp_dv_cmdlist_commit(shared_list) == 0
    failures: list[str] = []

    def work(number: int) -> None:
        random = np.random.default_rng(number)
        weights, bias = halves(random.standard_normal((16, 9, 3, 3))), halves(random.standard_normal(16))
        expected = pack_conv(weights, bias)
        packed, size = np.zeros(expected.size, np.uint8), [expected.size]
        for turn in range(10):
            on = Board(size=1 << 16)
            raw, target = copy_command(on, number + turn)
            cmdlist = on.list_of(raw)
            codes = [dv.dmp_dv_cmdlist_commit(cmdlist)]
            ids = [dv.dmp_dv_cmdlist_exec(cmdlist), dv.dmp_dv_cmdlist_exec(shared_list)]
            codes += [dv.dmp_dv_pack_conv_weights(9, 3, 3, 16, None, weights, bias, None, packed, size)]
            codes += [dv.dmp_dv_cmdlist_wait(shared_list, ids[1]), dv.dmp_dv_cmdlist_wait(cmdlist, ids[0])]
            dv.dmp_dv_mem_retain(shared.mem)
            result = on.data[target.offs : target.offs + 1024].view(np.float16)
            if any(codes) or not (result == number + turn).all() or not (packed == expected).all():
                failures.append(f"thread {number}, turn {turn}: {codes} {message()}")
            dv.dmp_dv_mem_release(shared.mem)
            dv.dmp_dv_cmdlist_release(cmdlist)
            on.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert (shared.data[shared_target.offs : shared_target.offs + 1024].view(np.float16) == 7).all()
    assert dv.dmp_dv_cmdlist_release(shared_list) == 0
    shared.close()
    assert dv.dmp_dv_mem_get_total_size() == before


@pytest.mark.parametrize("pack", [dv.dmp_dv_pack_conv_weights, dv.dmp_dv_pack_dil_weights])
def test_nine_arguments_by_position_are_those_of_the_wiki(pack: Callable[..., int]) -> None:
    weights, bias, size = halves(np.arange(54)), halves(np.arange(2)), [0]
    assert pack(3, 3, 3, 2, None, None, None, None, size) == 0
    packed = [np.zeros(size[0] + 16, np.uint8) for _ in range(2)]
    packed = [one[-one.ctypes.data % 16 :][: size[0]] for one in packed]
    assert pack(3, 3, 3, 2, None, weights, bias, packed[0], size) == 0
    assert pack(3, 3, 3, 2, None, weights, bias, None, packed[1], size) == 0
    assert packed[0].any() and packed[0].tobytes() == packed[1].tobytes()


def test_leaks_are_reported_in_debug_mode(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.WARNING, "bmcompiler.runtime.dmp_dv")
    for debug in (False, True):
        monkeypatch.setenv("DMP_DV_DEBUG", str(int(debug)))
        on = Board()
        command, _ = copy_command(on)
        cmdlist = on.list_of(command)
        dv.dmp_dv_context_release(on.ctx)
        dv.dmp_dv_cmdlist_release(cmdlist)
        dv.dmp_dv_mem_release(on.mem)
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 2
    assert re.search(
        r"leaked: memory 0x\w+ with 1 reference\(s\), created at .*dv_device.py:\d+, 4194304 bytes", texts[0]
    )
    assert re.search(r"leaked: command list .*dv_device.py:\d+, 1 command\(s\)", texts[1])


def test_nothing_is_reported_when_all_is_released(caplog: pytest.LogCaptureFixture) -> None:
    with board(debug=True) as on:
        on.run(copy_command(on)[0])
    assert not caplog.records


CELLS = [lambda n: [n], ctypes.c_size_t, lambda n: np.array([n], np.uint64)]


@pytest.mark.parametrize("cell", CELLS)
def test_packers_tell_their_size(cell: Callable[[int], object]) -> None:
    def value(size: object) -> int:
        return int(size.value if isinstance(size, ctypes.c_size_t) else size[0])  # type: ignore[index]

    quant, slopes = np.zeros(256, np.uint16), np.zeros(2, np.uint16)
    size = cell(0)
    assert dv.dmp_dv_pack_conv_weights(3, 3, 3, 2, None, None, None, None, None, size) == 0
    assert value(size) == 304
    for packer, given, expected in (
        (dv.dmp_dv_pack_conv_weights, (quant, None), 672),
        (dv.dmp_dv_pack_conv_weights, (None, slopes), 320),
        (dv.dmp_dv_pack_dil_weights, (None, None), 9 * 304),
    ):
        size = cell(0)
        assert packer(3, 3, 3, 2, given[0], None, None, given[1], None, size) == 0
        assert value(size) == expected
    size = cell(0)
    assert dv.dmp_dv_pack_fc_weights(20, 1, 1, 7, 1, 1, None, None, None, None, size) == 0
    assert value(size) == 304


def test_packers_refuse_what_they_cannot_pack() -> None:
    weights, bias = np.arange(1, 55, dtype=np.uint16), np.ones(2, np.uint16)
    memory = np.zeros(400, np.uint8)
    memory = memory[-memory.ctypes.data % 16 :]

    def conv(kx: int = 3, m: int = 2, w: object = weights, out: object = memory, size: object = None) -> int:
        size = [320] if size is None else size
        return dv.dmp_dv_pack_conv_weights(3, kx, 3, m, None, w, bias, None, out, size)

    assert conv(kx=0) == conv(kx=8) == conv(m=0) == -1
    assert dv.dmp_dv_pack_conv_weights(3, 3, 3, 2, None, weights, bias, None, memory, None) == -1
    assert conv(out=None) == -1
    assert conv(w=None) == conv(w=weights[:53]) == -1
    assert conv(out=memory[2:]) == errno.EINVAL
    assert conv(out=bytes(320)) == -1

    memory[:] = 0xFF
    assert conv() == 0 and not memory[304:320].any()  # all of the given buffer is cleared
    whole = memory[:304].copy()
    memory[:] = 0xFF
    size = [160]
    assert conv(size=size) == -1 and size == [304]
    np.testing.assert_array_equal(memory[:160], whole[:160])  # what fits is written
    assert (memory[160:] == 0xFF).all()


def test_fc_packer_has_codes_of_its_own() -> None:
    weights, bias = np.zeros(8, np.uint16), np.zeros(2, np.uint16)
    out = np.zeros(64, np.uint8)
    out = out[-out.ctypes.data % 16 :]
    arguments = (4, 1, 1, 2, 1, 1, None)
    assert dv.dmp_dv_pack_fc_weights(0, 1, 1, 2, 1, 1, None, weights, bias, out, [32]) == errno.EINVAL
    assert dv.dmp_dv_pack_fc_weights(*arguments, None, bias, out, [32]) == errno.EINVAL
    assert dv.dmp_dv_pack_fc_weights(*arguments, weights, bias, out, None) == errno.EINVAL
    assert dv.dmp_dv_pack_fc_weights(*arguments, weights, bias, out, [16]) == -1
    assert dv.dmp_dv_pack_fc_weights(*arguments, weights, bias, out, [32]) == 0
