"""The BM runtime API (the vendor's BM Runtime Library), same names and parameters in Python form.

C out-parameters become return values: a call `err = f(in, &out)` is `err, out = f(in)` here, with `out` None on
failure; `bm_enum_devices` returns (count, infos). Buffers of data stay parameters: any bytes-like object or numpy array
to read, any writable contiguous one to fill. Errors are the vendor's codes (`BmErr`); the reason of each is written to
the log "bmcompiler.runtime". Calls that return a handle without a code return None on failure.

    err, ctx = bm_init(0)
    err, net = bmnet_register_bmodel(ctx, "lenet.bmodel")
    err = bmnet_set_input_shape(net, (1, 1, 28, 28))
    err, info = bmnet_get_output_info(net)
    output = bytearray(info.output_size)
    err = bmnet_inference(net, image, output)
    bmnet_cleanup(net)
    bm_exit(ctx)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bmcompiler.files.store import StrPath
from bmcompiler.runtime import bmruntime_commands, bmruntime_memory
from bmcompiler.runtime.bmdevice import (
    RUNTIME,
    BmContext,
    BmDevice,
    BmDevInfo,
    BmErr,
    BmFmt,
    BmMem,
    BmRuntimeError,
    BmShape,
    coded,
    device,
    guarded,
    or_none,
    with_code,
)
from bmcompiler.runtime.bmnet import (
    BmNet,
    BmNetInfo,
    BmNetOutputInfo,
    ReadBuffer,
    WriteBuffer,
    net_of_file,
    net_of_info,
    readable,
    writable,
)
from bmcompiler.runtime.bmruntime_commands import *  # noqa: F403
from bmcompiler.runtime.bmruntime_memory import *  # noqa: F403
from bmcompiler.runtime.devices import MAX_DEVICES
from bmcompiler.runtime.simulator.bm1880.plan import compile_plan

if TYPE_CHECKING:
    from bmcompiler.backends.bm1880.bmkernel import Bmk1880Context

__all__ = [
    "BmContext", "BmDevInfo", "BmDevice", "BmErr", "BmFmt", "BmMem", "BmNet", "BmNetInfo", "BmNetOutputInfo",
    "BmShape", "bm_bind_device", "bm_context_create", "bm_context_destroy", "bm_device_close", "bm_device_config",
    "bm_device_get_chip_ver", "bm_device_get_gmem_size", "bm_device_get_info", "bm_device_open", "bm_device_query",
    "bm_enum_devices", "bm_exit", "bm_get_device", "bm_init", "bm_library_type", "bm_unbind_device",
    "bmnet_cleanup", "bmnet_get_output_info", "bmnet_import_neuron_devmem", "bmnet_import_weight_devmem",
    "bmnet_inference", "bmnet_input_devmem", "bmnet_load_input", "bmnet_load_neuron", "bmnet_neuron_devmem",
    "bmnet_output_devmem", "bmnet_register", "bmnet_register_bmodel", "bmnet_register_noalloc", "bmnet_run",
    "bmnet_set_input_shape", "bmnet_store_neuron", "bmnet_store_output", "bmnet_weight_devmem",
    "bmruntime_bmkernel_create", "bmruntime_bmkernel_destroy", "bmruntime_bmkernel_submit",
    "bmruntime_bmkernel_submit_pio",
]  # fmt: skip
__all__ += bmruntime_memory.__all__
__all__ += bmruntime_commands.__all__


# Devices and contexts.


@with_code
def bm_init(index: int = 0) -> BmContext:
    """Open device `index` and make a context bound to it."""
    ctx = BmContext()
    ctx.bind(device(index))
    return ctx


@RUNTIME.checked
def bm_exit(ctx: BmContext) -> None:
    """Release the context and all of its device memory."""
    bm_context_destroy(ctx)


@RUNTIME.checked
def bm_enum_devices() -> tuple[int, list[BmDevInfo]]:
    """Number of devices and their facts."""
    return MAX_DEVICES, [BmDevInfo() for _ in range(MAX_DEVICES)]


@with_code
def bm_device_open(index: int) -> BmDevice:
    """Open a device."""
    return device(index).open()


@RUNTIME.checked
def bm_device_close(dev: BmDevice) -> None:
    """Close a device; contexts that are bound to it keep working. Its handle ends with its last user."""
    dev.close()


def _not_supported(name: str) -> BmErr:
    def refuse() -> None:
        raise BmRuntimeError(BmErr.NOT_SUPPORTED, f"{name} is not supported, as in the vendor's library")

    return guarded(refuse)[0]


@RUNTIME.checked
def bm_device_query(dev: BmDevice, id: int, buf: object = None) -> BmErr:
    """Always NOT_SUPPORTED, as in the vendor's library."""
    return _not_supported("bm_device_query")


@RUNTIME.checked
def bm_device_config(dev: BmDevice, id: int, buf: object = None) -> BmErr:
    """Always NOT_SUPPORTED, as in the vendor's library."""
    return _not_supported("bm_device_config")


@RUNTIME.checked
def bm_device_get_info(dev: BmDevice) -> BmDevInfo:
    """Facts of a device."""
    return dev.info


@RUNTIME.checked
def bm_device_get_gmem_size(dev: BmDevice) -> int:
    """Bytes of the global memory of a device."""
    return dev.info.gmem_size


@RUNTIME.checked
def bm_device_get_chip_ver(dev: BmDevice) -> int:
    """The number of the chip, 1880."""
    return dev.info.version


def bm_library_type() -> str:
    """What runs the commands; text of the library, for people to read."""
    return "bmcompiler simulator"


@with_code
def bm_context_create() -> BmContext:
    """A context without a device."""
    return BmContext()


@or_none
def bm_context_destroy(ctx: BmContext) -> None:
    """Release the context and all of its device memory."""
    ctx.check()
    ctx.close()


@coded
def bm_bind_device(ctx: BmContext, dev: BmDevice) -> None:
    """Bind a context to a device; BUSY when it is bound already."""
    ctx.bind(dev)


@or_none
def bm_unbind_device(ctx: BmContext) -> None:
    """Unbind a context from its device; its device memory is released."""
    ctx.unbind()


@or_none
def bm_get_device(ctx: BmContext) -> BmDevice:
    """The device of a context."""
    return ctx.device()


# Kernel programs.


@with_code
def bmruntime_bmkernel_create(ctx: BmContext) -> Bmk1880Context:
    """The kernel context of the calling thread, for bmk1880_* calls. BUSY when the thread has one already."""
    from bmcompiler.backends.bm1880.bmkernel import bmk1880_register  # programs that run models need no kernels

    ctx.device()
    if ctx.kernel is not None:
        raise BmRuntimeError(BmErr.BUSY, "this thread has a kernel context already")
    ctx.kernel = bmk1880_register()
    ctx.kernel_contexts.append(ctx.kernel)
    return ctx.kernel


def _kernel(ctx: BmContext) -> Bmk1880Context:
    ctx.check()
    if ctx.kernel is None:
        raise BmRuntimeError(BmErr.UNINITIALIZED, "this thread has no kernel context")
    return ctx.kernel


@coded
def bmruntime_bmkernel_submit(ctx: BmContext) -> None:
    """Execute the calls made on this thread's kernel context since the last submit. Addresses are those of bmmem_*."""
    _submit(ctx)


def _submit(ctx: BmContext) -> None:
    from bmcompiler.backends.bm1880.bmkernel import bmk1880_acquire_cmdbuf, bmk1880_reset

    kernel, chip = _kernel(ctx), ctx.chip()
    cmdbuf = bmk1880_acquire_cmdbuf(kernel)
    bmk1880_reset(kernel)
    with ctx.lock:
        compile_plan(cmdbuf, chip).run()


@coded
def bmruntime_bmkernel_submit_pio(ctx: BmContext) -> None:
    """As `bmruntime_bmkernel_submit`: how commands reach the chip makes no difference here."""
    _submit(ctx)


@or_none
def bmruntime_bmkernel_destroy(ctx: BmContext) -> None:
    """End this thread's kernel context; calls that were not submitted are dropped."""
    kernel = _kernel(ctx)
    ctx.kernel_contexts.remove(kernel)
    kernel.close()
    ctx.kernel = None


# Networks.


@with_code
def bmnet_register(ctx: BmContext, info: BmNetInfo) -> BmNet:
    """Register a network given in parts, with its weights copied to new device memory."""
    return net_of_info(ctx, info, allocate=True)


@with_code
def bmnet_register_bmodel(ctx: BmContext, bmodel: StrPath) -> BmNet:
    """Register a model file. DATA for a malformed file, NOT_SUPPORTED for a model of another chip."""
    return net_of_file(ctx, bmodel)


@with_code
def bmnet_register_noalloc(ctx: BmContext, info: BmNetInfo) -> BmNet:
    """Register a network without device memory; import weights (filled by the caller) and activations before use."""
    return net_of_info(ctx, info, allocate=False)


@coded
def bmnet_set_input_shape(net: BmNet, input_shape: Sequence[int]) -> None:
    """Select the program for an input shape; INVALID_ARGUMENT when there is none."""
    net.select(input_shape)


@with_code
def bmnet_get_output_info(net: BmNet) -> BmNetOutputInfo:
    """Outputs of the selected program."""
    return net.output_info()


@or_none
def bmnet_cleanup(net: BmNet) -> None:
    """End a network and free the memory that registration allocated."""
    net.close()


@coded
def bmnet_run(net: BmNet) -> None:
    """Execute the selected program on what is in device memory."""
    net.run()


@or_none
def bmnet_weight_devmem(net: BmNet) -> BmMem | None:
    """Weight memory of the selected program."""
    return net.weight_memory()


@or_none
def bmnet_neuron_devmem(net: BmNet) -> BmMem:
    """The device memory that holds the activations of a net."""
    return net.neuron_memory()


@or_none
def bmnet_input_devmem(net: BmNet) -> BmMem:
    """The inputs' part of the activation memory."""
    return net.input_memory()


@or_none
def bmnet_output_devmem(net: BmNet) -> BmMem:
    """The outputs' part of the activation memory."""
    return net.output_memory()


@coded
def bmnet_import_weight_devmem(net: BmNet, weight_mem: BmMem) -> None:
    """Use the caller's memory, already filled, as weights."""
    net.import_weight(weight_mem)


@coded
def bmnet_import_neuron_devmem(net: BmNet, neuron_mem: BmMem) -> None:
    """Use the caller's memory for activations."""
    net.import_neuron(neuron_mem)


@coded
def bmnet_load_input(net: BmNet, input: ReadBuffer) -> None:
    """Copy the inputs, one behind the other, to the device."""
    net.load_input(input)


@coded
def bmnet_load_neuron(net: BmNet, neuron_offset: int, neuron_size: int, neuron: ReadBuffer) -> None:
    """Copy `neuron_size` bytes to the activations from byte `neuron_offset` on."""
    net.neuron_memory().cut(neuron_offset, neuron_size).data[:] = readable(neuron, neuron_size)


@coded
def bmnet_store_output(net: BmNet, output: WriteBuffer) -> None:
    """Copy the outputs, one behind the other in list order, to host memory."""
    net.store_output(output)


@coded
def bmnet_store_neuron(net: BmNet, neuron_offset: int, neuron_size: int, neuron: WriteBuffer) -> None:
    """Copy `neuron_size` bytes of the activations from byte `neuron_offset` on to host memory."""
    writable(neuron, neuron_size)[:] = net.neuron_memory().cut(neuron_offset, neuron_size).data


@coded
def bmnet_inference(net: BmNet, input: ReadBuffer, output: WriteBuffer) -> None:
    """Load the inputs, run, store the outputs."""
    net.load_input(input)
    net.run()
    net.store_output(output)
