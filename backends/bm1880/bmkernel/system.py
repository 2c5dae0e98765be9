"""System calls of the kernel API: contexts, streams, local memory (vendor: BMKernel library, System API)."""

from __future__ import annotations

from math import prod

from bmcompiler.backends.bm1880.bmkernel.checks import fail, kernel_call
from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context, bmk1880_chip_info_t, bmk1880_info_t
from bmcompiler.backends.bm1880.bmkernel.prototypes import KERNEL
from bmcompiler.backends.bm1880.bmkernel.sync import Op
from bmcompiler.backends.bm1880.bmkernel.tensors import lane_bytes, shape_t, tensor_lmem
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.isa import CTRL_AL, CTRL_NULL, FMT_I8
from bmcompiler.errors import EncodingError


@KERNEL.checked
def shape_equal(s1: shape_t, s2: shape_t) -> bool:
    """Whether both are the same shape."""
    return s1 == s2


@KERNEL.checked
def bmk1880_tl_shape_to_nchw(ctx: Bmk1880Context, s: shape_t) -> tuple[int, int, int, int]:
    """(n, c, h, w) as local memory has them: of a tensor its own, of a matrix those of its pieces of rows."""
    return tensor_lmem(0, s, FMT_I8).dims


@KERNEL.checked
def bmk1880_tl_shape_to_size(ctx: Bmk1880Context, s: shape_t, aligned: bool, fmt: int) -> int:
    """Bytes of a lane that a tensor takes. Raises EncodingError for formats and shapes that no tensor has."""
    return lane_bytes(tensor_lmem(0, s, fmt, bool(aligned)).shape, bool(aligned))


@KERNEL.checked
def bmk1880_tl_size(ctx: Bmk1880Context, tlp: tensor_lmem) -> int:
    """Bytes of a lane that a tensor takes."""
    return lane_bytes(tlp.shape, tlp.aligned)


@KERNEL.checked
def bmk1880_tg_shape_to_size(s: shape_t, fmt: int) -> int:
    """Bytes of a tensor in global memory. Raises EncodingError for formats and shapes that no tensor has."""
    if s.dim not in (2, 3, 4) or min(s) < 1:
        raise EncodingError(f"bmk1880_tg_shape_to_size: s is {s}, no tensor or matrix of positive sizes")
    tensor_lmem(0, shape_t(4, 1, 1, 1, 1), fmt)
    return prod(s.dims)


@KERNEL.checked
def bmk1880_register(info: bmk1880_info_t | None = None) -> Bmk1880Context:
    """A new context. Raises EncodingError for another chip version."""
    return Bmk1880Context(info)


@KERNEL.checked
def bmk1880_cleanup(ctx: Bmk1880Context) -> None:
    """Free a context; later calls on it raise EncodingError."""
    ctx.close()


@KERNEL.checked
def bmk1880_acquire_cmdbuf(ctx: Bmk1880Context) -> bytes:
    """The command buffer so far (its length replaces the C call's size result)."""
    return ctx.acquire()


@KERNEL.checked
def bmk1880_reset(ctx: Bmk1880Context) -> None:
    """Empty the command buffer and restart in serial mode."""
    ctx.reset()


@KERNEL.checked
def bmk1880_parallel_enable(ctx: Bmk1880Context) -> None:
    """Open a group whose instructions on different engines do not wait for each other."""
    ctx.sync.parallel_enable()


@KERNEL.checked
def bmk1880_parallel_disable(ctx: Bmk1880Context) -> None:
    """Close the parallel group."""
    ctx.sync.parallel_disable()


@KERNEL.checked
def bmk1880_create_streams(ctx: Bmk1880Context, nr_streams: int) -> None:
    """Enter stream mode with streams 0..nr_streams-1; stream 0 is current."""
    ctx.sync.create_streams(nr_streams)


@KERNEL.checked
def bmk1880_destroy_streams(ctx: Bmk1880Context) -> None:
    """Leave stream mode for serial mode."""
    ctx.destroy_streams()


@KERNEL.checked
def bmk1880_set_stream(ctx: Bmk1880Context, i: int) -> None:
    """Put the following instructions into stream i."""
    ctx.sync.set_stream(i)


@KERNEL.checked
def bmk1880_add_dependency(ctx: Bmk1880Context, before: Op, after: Op) -> None:
    """Make the instruction `after` wait for `before` (handles returned by the computation calls)."""
    ctx.sync.add_dependency(before, after)


@KERNEL.checked
def bmk1880_cpu_op(ctx: Bmk1880Context, name: str, params: bytes = b"") -> None:
    """Run CPU plugin `name` with parameter bytes `params`, after all earlier and before all later instructions."""
    ctx.emit_cpu(name, params)


@KERNEL.checked
def bmk1880_chip_info() -> bmk1880_chip_info_t:
    """Design parameters of the chip."""
    return bmk1880_chip_info_t(
        CHIP.version, CHIP.lanes, CHIP.execution_units, CHIP.lmem_size, CHIP.lmem_banks, CHIP.lmem_bank_size
    )


@KERNEL.checked
def bmk1880_tl_prealloc(ctx: Bmk1880Context, la: int, s: shape_t, fmt: int) -> tensor_lmem:
    """Descriptor of an unaligned tensor at flat local address `la`; nothing is reserved."""
    return tensor_lmem(la, s, fmt, False)


@KERNEL.checked
def bmk1880_tl_prealloc_align(ctx: Bmk1880Context, la: int, s: shape_t, fmt: int) -> tensor_lmem:
    """Descriptor of an aligned tensor at flat local address `la`; nothing is reserved."""
    return tensor_lmem(la, s, fmt, True)


@kernel_call
def bmk1880_tl_alloc(ctx: Bmk1880Context, s: shape_t, fmt: int, ctrls: int) -> tensor_lmem | None:
    """Allocate a tensor (CTRL_NULL unaligned, CTRL_AL aligned) on the stack; None when it does not fit."""
    return ctx.lmem.stack(None).alloc(s, fmt, _aligned(ctrls))


@kernel_call
def bmk1880_tl_alloc_bank(ctx: Bmk1880Context, bank_id: int, s: shape_t, fmt: int, ctrls: int) -> tensor_lmem | None:
    """Allocate a tensor from one bank's own stack; None when it does not fit."""
    return ctx.lmem.stack(bank_id).alloc(s, fmt, _aligned(ctrls))


@KERNEL.checked
def bmk1880_tl_free(ctx: Bmk1880Context, tlp: tensor_lmem) -> None:
    """Free a tensor; allocated ones last-in first-out (EncodingError otherwise)."""
    ctx.lmem.free(tlp)


def _aligned(ctrls: int) -> bool:
    if ctrls not in (CTRL_NULL, CTRL_AL):
        fail("ctrls", hex(ctrls), "must be CTRL_NULL or CTRL_AL")
    return ctrls == CTRL_AL
