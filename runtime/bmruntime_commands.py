"""Calls of the BM runtime that programs make beyond the vendor's manual: command buffers, parts of memory, inputs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from bmcompiler.bmodel import loads
from bmcompiler.errors import RuntimeUseError
from bmcompiler.runtime.bmdevice import (
    RUNTIME,
    BmContext,
    BmErr,
    BmMem,
    BmRuntimeError,
    coded,
    guarded,
    or_none,
    with_code,
)
from bmcompiler.runtime.bmnet import (
    BmNet,
    BmNetInfo,
    BmNetInputInfo,
    BmNetModelInfo,
    ReadBuffer,
    WriteBuffer,
    net_of_info,
    net_of_model,
    readable,
    writable,
)
from bmcompiler.runtime.cpu_functions import CpuMemory, register_cpu_function
from bmcompiler.runtime.simulator.bm1880.plan import compile_plan

__all__ = [
    "BmNetInputInfo",
    "BmNetModelInfo",
    "bm_load_cmdbuf",
    "bm_memcpy_d2s_ex",
    "bm_memcpy_s2d_ex",
    "bm_run_cmdbuf",
    "bm_run_cmdbuf_pio",
    "bm_send_cmdbuf",
    "bm_wait_cmdbuf_done",
    "bmmet_get_input_threshold",
    "bmnet_get_input_info",
    "bmnet_get_input_threshold",
    "bmnet_get_model_info",
    "bmnet_inference_once",
    "bmnet_load_cmdbuf",
    "bmnet_load_part_input",
    "bmnet_register_bmodel_data",
    "bmnet_register_cpu_function",
    "bmnet_set_input_shape2",
]  # fmt: skip

_NUMBERS = 1 << 16


@coded
def bm_memcpy_s2d_ex(ctx: BmContext, dst: BmMem, src: ReadBuffer, offset: int, size: int) -> None:
    """Fill bytes offset .. offset + size of a memory object from host memory."""
    _part(ctx, dst, offset, size).data[:] = readable(src, size)


@coded
def bm_memcpy_d2s_ex(ctx: BmContext, dst: WriteBuffer, src: BmMem, offset: int, size: int) -> None:
    """Copy bytes offset .. offset + size of a memory object to host memory."""
    writable(dst, size)[:] = _part(ctx, src, offset, size).data


def _part(ctx: BmContext, mem: BmMem, offset: int, size: int) -> BmMem:
    mem.need(ctx.device())
    return mem.cut(offset, size)


@with_code
def bm_load_cmdbuf(ctx: BmContext, cmdbuf: ReadBuffer, sz: int) -> BmMem:
    """(code, device memory with a command buffer), for `bm_run_cmdbuf`."""
    data = readable(cmdbuf, sz)
    mem = ctx.allocate(sz)
    mem.data[:] = data
    return mem


@with_code
def bm_run_cmdbuf(ctx: BmContext, cmdbuf_mem: BmMem) -> int:
    """Run a loaded command buffer; (code, a number to wait for). Addresses are those of bmmem_*."""
    cmdbuf_mem.need(ctx.device())
    return _run(ctx, cmdbuf_mem.data.tobytes())


@with_code
def bm_send_cmdbuf(ctx: BmContext, cmdbuf: ReadBuffer, sz: int) -> int:
    """Run a command buffer; (code, a number to wait for)."""
    return _run(ctx, readable(cmdbuf, sz).tobytes())


@coded
def bm_run_cmdbuf_pio(ctx: BmContext, cmdbuf: ReadBuffer, sz: int) -> None:
    """Run a command buffer."""
    _run(ctx, readable(cmdbuf, sz).tobytes())


@coded
def bm_wait_cmdbuf_done(ctx: BmContext, seq_no: int) -> None:
    """Everything is done when a call returns; a number that none gave is INVALID_ARGUMENT."""
    ctx.device()
    if not (ctx.sent >= _NUMBERS or 1 <= seq_no <= ctx.sent):
        raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"no command buffer was sent with seq_no {seq_no}")


def _run(ctx: BmContext, cmdbuf: bytes) -> int:
    with ctx.lock:
        compile_plan(cmdbuf, ctx.chip()).run()
        ctx.sent += 1
        return ctx.sent % _NUMBERS


@with_code
def bmnet_register_bmodel_data(ctx: BmContext, bmodel_data: ReadBuffer, size: int) -> BmNet:
    """`bmnet_register_bmodel` with the bytes of a model file."""
    return net_of_model(ctx, loads(readable(bmodel_data, size).tobytes(), "bmodel_data"))


@coded
def bmnet_set_input_shape2(net: BmNet, shape: Sequence[Sequence[int]], num: int) -> None:
    """Select the program whose inputs have these shapes."""
    if not 1 <= num <= len(shape):
        raise BmRuntimeError(BmErr.INVALID_ARGUMENT, f"{num} shapes are asked for, there are {len(shape)}")
    net.select(*shape[:num])


@or_none
def bmnet_get_input_info(net: BmNet) -> BmNetInputInfo:
    """Inputs of the selected program."""
    return net.input_info()


@or_none
def bmnet_get_model_info(net: BmNet) -> BmNetModelInfo:
    """Name and chip of a network, and inputs and outputs of all of its programs."""
    return net.model_info()


@coded
def bmnet_load_part_input(net: BmNet, input: ReadBuffer, size: int) -> None:
    """Copy the first `size` bytes of the inputs to the device; the others stay as they are there."""
    net.input_memory().cut(0, size).data[:] = readable(input, size)


@coded
def bmnet_load_cmdbuf(net: BmNet, cmdbuf: ReadBuffer, cmdbuf_size: int) -> None:
    """Give the selected program other commands of `cmdbuf_size` bytes; addresses are relocated when they run."""
    net.load_commands(readable(cmdbuf, cmdbuf_size).tobytes())


@RUNTIME.checked
def bmnet_get_input_threshold(net: BmNet) -> float:
    """The threshold of the first input of the selected program; 0 on failure."""
    return guarded(lambda: net.command.inputs[0].threshold)[1] or 0.0


@RUNTIME.checked
def bmmet_get_input_threshold(net: BmNet) -> float:
    """The name that older headers have for the same."""
    return guarded(lambda: net.command.inputs[0].threshold)[1] or 0.0


@coded
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
) -> None:
    """Register a network given in parts, run it once, clean it up."""
    parts = readable(weight, weight_size).tobytes(), readable(cmdbuf, cmdbuf_size).tobytes()
    info = BmNetInfo(batch_size, *parts, neuron_size, input_size, output_offset, output_size)
    net = net_of_info(ctx, info, True)
    try:
        net.load_input(input)
        net.run()
        net.store_output(output)
    finally:
        net.close()


_HOST_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_void_p, *3 * (ctypes.c_void_p, ctypes.c_uint64)))


@coded
def bmnet_register_cpu_function(name: str, function: int, user: int | None = None) -> None:
    """Let a C function of the process run the CPU records of this name; models that are registered later call it.

    function: the address of an `int f(void *user, uint8_t *neuron, uint64_t neuron_size, uint8_t *weight, uint64_t
    weight_size, const uint8_t *param, uint64_t param_size)`, which gets the net's memory of activations and of weights
    and the bytes of the record, and returns 0. An earlier function of the name is replaced; names have at most 15
    letters of ASCII.
    """
    if user is not None and not isinstance(user, int):
        raise RuntimeUseError(f"user is an object of class {type(user).__name__}, not an address")
    called = _HOST_FUNCTION(function)

    def run(memory: CpuMemory, parameters: bytes) -> None:
        places = (place for one in (memory.neuron, memory.weight) for place in (one.ctypes.data, one.size))
        code = called(user, *places, parameters, len(parameters))
        if code:
            raise RuntimeUseError(f"the function of the program returned {code}")

    register_cpu_function(name, run)
