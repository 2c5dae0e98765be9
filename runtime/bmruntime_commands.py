"""Calls of the BM runtime that programs make beyond the vendor's manual: command buffers, parts of memory, inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bmcompiler.bmodel import loads
from bmcompiler.runtime.bmdevice import RUNTIME, BmContext, BmErr, BmMem, BmRuntimeError, guarded
from bmcompiler.runtime.bmnet import (
    BmNet,
    BmNetInfo,
    BmNetInputInfo,
    ReadBuffer,
    WriteBuffer,
    net_of_info,
    net_of_model,
    readable,
    writable,
)
from bmcompiler.runtime.simulator.bm1880.plan import compile_plan

__all__ = [
    "BmNetInputInfo", "bm_load_cmdbuf", "bm_memcpy_d2s_ex", "bm_memcpy_s2d_ex", "bm_run_cmdbuf", "bm_run_cmdbuf_pio",
    "bm_send_cmdbuf", "bm_wait_cmdbuf_done", "bmmet_get_input_threshold", "bmnet_get_input_info",
    "bmnet_get_input_threshold", "bmnet_inference_once", "bmnet_register_bmodel_data", "bmnet_set_input_shape2",
]  # fmt: skip

_NUMBERS = 1 << 16


def _code(action: Callable[[], object]) -> BmErr:
    return guarded(action)[0]


@RUNTIME.checked
def bm_memcpy_s2d_ex(ctx: BmContext, dst: BmMem, src: ReadBuffer, offset: int, size: int) -> BmErr:
    """Fill bytes offset .. offset + size of a memory object from host memory."""

    def act() -> None:
        _part(ctx, dst, offset, size).data[:] = readable(src, size)

    return _code(act)


@RUNTIME.checked
def bm_memcpy_d2s_ex(ctx: BmContext, dst: WriteBuffer, src: BmMem, offset: int, size: int) -> BmErr:
    """Copy bytes offset .. offset + size of a memory object to host memory."""

    def act() -> None:
        writable(dst, size)[:] = _part(ctx, src, offset, size).data

    return _code(act)


def _part(ctx: BmContext, mem: BmMem, offset: int, size: int) -> BmMem:
    mem.need(ctx.device())
    return mem.cut(offset, size)


@RUNTIME.checked
def bm_load_cmdbuf(ctx: BmContext, cmdbuf: ReadBuffer, sz: int) -> tuple[BmErr, BmMem | None]:
    """(code, device memory with a command buffer), for `bm_run_cmdbuf`."""

    def act() -> BmMem:
        data = readable(cmdbuf, sz)
        mem = ctx.allocate(sz)
        mem.data[:] = data
        return mem

    return guarded(act)


@RUNTIME.checked
def bm_run_cmdbuf(ctx: BmContext, cmdbuf_mem: BmMem) -> tuple[BmErr, int | None]:
    """Run a loaded command buffer; (code, a number to wait for). Addresses are those of bmmem_*."""

    def act() -> int:
        cmdbuf_mem.need(ctx.device())
        return _run(ctx, cmdbuf_mem.data.tobytes())

    return guarded(act)


@RUNTIME.checked
def bm_send_cmdbuf(ctx: BmContext, cmdbuf: ReadBuffer, sz: int) -> tuple[BmErr, int | None]:
    """Run a command buffer; (code, a number to wait for)."""
    return guarded(lambda: _run(ctx, readable(cmdbuf, sz).tobytes()))


@RUNTIME.checked
def bm_run_cmdbuf_pio(ctx: BmContext, cmdbuf: ReadBuffer, sz: int) -> BmErr:
    """Run a command buffer."""
    return _code(lambda: _run(ctx, readable(cmdbuf, sz).tobytes()))


@RUNTIME.checked
def bm_wait_cmdbuf_done(ctx: BmContext, seq_no: int) -> BmErr:
    """Everything is done when a call returns; a number that none gave is INVALID_ARGUMENT."""

    def act() -> None:
        ctx.device()
        if not (ctx.sent >= _NUMBERS or 1 <= seq_no <= ctx.sent):
            raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"no command buffer was sent with seq_no {seq_no}")

    return _code(act)


def _run(ctx: BmContext, cmdbuf: bytes) -> int:
    with ctx.lock:
        compile_plan(cmdbuf, ctx.chip()).run()
        ctx.sent += 1
        return ctx.sent % _NUMBERS


@RUNTIME.checked
def bmnet_register_bmodel_data(ctx: BmContext, bmodel_data: ReadBuffer, size: int) -> tuple[BmErr, BmNet | None]:
    """`bmnet_register_bmodel` with the bytes of a model file."""
    return guarded(lambda: net_of_model(ctx, loads(readable(bmodel_data, size).tobytes(), "bmodel_data")))


@RUNTIME.checked
def bmnet_set_input_shape2(net: BmNet, shape: Sequence[Sequence[int]], num: int) -> BmErr:
    """Select the program whose inputs have these shapes."""

    def act() -> None:
        if not 1 <= num <= len(shape):
            raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"{num} shapes are asked for, there are {len(shape)}")
        net.select(*shape[:num])

    return _code(act)


@RUNTIME.checked
def bmnet_get_input_info(net: BmNet) -> BmNetInputInfo | None:
    """Inputs of the selected program."""
    return guarded(net.input_info)[1]


@RUNTIME.checked
def bmnet_get_input_threshold(net: BmNet) -> float:
    """The threshold of the first input of the selected program; 0 on failure."""
    return guarded(lambda: net.command.inputs[0].threshold)[1] or 0.0


@RUNTIME.checked
def bmmet_get_input_threshold(net: BmNet) -> float:
    """The name that older headers have for the same."""
    return guarded(lambda: net.command.inputs[0].threshold)[1] or 0.0


@RUNTIME.checked
def bmnet_inference_once(
    ctx: BmContext,
    input: ReadBuffer,
    output: WriteBuffer,
    batch_size: int,
    weight: ReadBuffer,
    weight_size: int,
    cmdbuf: ReadBuffer,
    cmdbuf_size: int,
    neuron_size: int,
    input_size: int,
    output_offset: int,
    output_size: int,
) -> BmErr:
    """Register a network given in parts, run it once, clean it up."""

    def act() -> None:
        parts = readable(weight, weight_size).tobytes(), readable(cmdbuf, cmdbuf_size).tobytes()
        info = BmNetInfo(batch_size, *parts, neuron_size, input_size, output_offset, output_size)
        net = net_of_info(ctx, info, True)
        try:
            net.load_input(input)
            net.run()
            net.store_output(output)
        finally:
            net.close()

    return _code(act)
