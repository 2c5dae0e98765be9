"""What the driver refuses when a command is added to a list, in its order (dv.md 1.7). CONV; the rest in checks_other.

A refusal carries the driver's return code, a short name of the rule and a sentence. Compilers ask the same functions.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import NamedTuple

from bmcompiler.backends.dv.chip import DvChip
from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, Run
from bmcompiler.backends.dv.driver.geometry import (
    Extent,
    chain,
    conv_out,
    effective_kernel,
    result,
    strides_are_zero,
    weight_bytes,
)
from bmcompiler.backends.dv.driver.structs import U8_TABLE_BYTES, Activation, Pool
from bmcompiler.backends.dv.driver.unified_buffer import chain_need, tile_run

FAILED = -1

SizeOf = Callable[[int], int]
"""Bytes of device memory behind a handle; handles come from the command."""


class Refusal(NamedTuple):
    """Why a command is not accepted: return code of the driver, name of the rule, sentence."""

    code: int
    rule: str
    text: str


Refusals = Iterator[Refusal]

_NULL_RULES = ("INPUT_NULL", "OUTPUT_NULL", "WEIGHT_NULL")


def failed(rule: str, text: str) -> Refusal:
    """The driver's usual return of -1."""
    return Refusal(FAILED, rule, text)


def first(refusals: Refusals) -> Refusal | None:
    """The refusal that the driver reports; later ones are never computed."""
    return next(refusals, None)


def check_conv(command: ConvCommand, chip: DvChip, size_of: SizeOf) -> Refusal | None:
    """The driver's check of a CONV command of full size, without its conversion table."""
    return first(_conv(command, chip, size_of))


def check_table(command: ConvCommand, size_of: SizeOf, align: int = 2) -> Refusal | None:
    """The check of the conversion table of a version 1 command, which comes first; it may be NULL."""
    if not command.u8_table.mem:
        return None
    return first(check_buffer("u8tofp16_table", command.u8_table, U8_TABLE_BYTES, size_of, align))


def _conv(command: ConvCommand, chip: DvChip, size_of: SizeOf) -> Refusals:
    yield from structure(command, chip)
    yield from _buffers(command, size_of)


def limits(command: ConvCommand, chip: DvChip) -> Refusal | None:
    """Why a command does not fit the device, for those who have no memory yet: handles may be NULL."""
    return next((refusal for refusal in structure(command, chip) if refusal.rule not in _NULL_RULES), None)


def structure(command: ConvCommand, chip: DvChip) -> Refusals:
    """All rules that need no buffer sizes."""
    if not command.input_buf.mem:
        yield failed("INPUT_NULL", "input_buf.mem is NULL")
    if not command.output_buf.mem:
        yield failed("OUTPUT_NULL", "output_buf.mem is NULL")
    if not command.topo:
        yield failed("TOPO0", "topo is 0: no run writes external memory")
    if not command.z:
        yield failed("Z0", "z is 0; a 2-D map has depth 1")
    yield from _runs(command, chip)
    if command.is_multi_run:
        yield from multi_run(command, chip)


def _runs(command: ConvCommand, chip: DvChip) -> Refusals:
    """Extents are followed run by run, because the rules of a run keep the formulas of its own extents sound."""
    source = Extent(command.w, command.h, command.z, command.c)
    start = source
    for index, run in enumerate(command.runs):
        for refusal in _run(command, run, source, chip):
            yield refusal._replace(text=f"run {index}: {refusal.text}")
        out, external = result(source, run), command.writes_external(index)
        if external and not out.bytes:
            yield failed("ZERO_OUTPUT", f"run {index}: the result {out.w} x {out.h} x {out.c} is empty")
        tiles = tile_run(source, run, chip.ub_size).tiles
        if not external and tiles != 1:
            yield failed("UB_RUN_TILES", f"run {index}: writes the unified buffer but needs {tiles} tiles")
        source = start if external else out


def _run(command: ConvCommand, run: Run, source: Extent, chip: DvChip) -> Refusals:
    if run.has_conv and not run.pz:
        yield failed("PZ0", "pz is 0; a 2-D kernel has depth 1")
    if run.has_conv and run.pool_enable not in (Pool.NONE, Pool.MAX):
        yield failed("POOL_WITH_CONV", f"pool_enable {run.pool_enable} cannot share a run with a convolution")
    if not (run.has_conv or run.pool_enable or run.actfunc or run.has_lrn):
        yield failed("NO_OP", "neither convolution, pooling, activation nor LRN is enabled")
    if run.conv_enable == 1:
        yield from _plain_conv(run, source, chip)
    if run.conv_enable == 3 and run.m != source.c:
        yield failed("DW_M_NE_C", f"a depthwise convolution of {source.c} channels cannot give {run.m}")
    yield from _pool(run, source, chip)
    if run.has_lrn and source.c % 16:
        yield failed("LRN_C", f"LRN needs a multiple of 16 channels, not {source.c}")
    if run.has_lrn and (run.has_conv or run.pool_enable or command.is_multi_run):
        yield failed("LRN_STANDALONE", "LRN cannot be combined with convolution, pooling or other runs")
    if run.is_deconv and not chip.is_current:
        yield failed("SVN_DECONV", f"transposed convolution needs device revision 93, not {chip.svn_version}")
    if strides_are_zero(run, command.is_multi_run):
        yield failed("STRIDE0", "a stride is 0, by which the driver divides")
    if run.is_dilated:
        yield from _dilated(command, run, source, chip)
    if run.has_prelu_stream and run.is_quantized:
        yield failed("QUANT_PRELU", "PReLU cannot be combined with quantized weights")
    tiling = tile_run(source, run, chip.ub_size)
    if tiling.tiles < 1:
        need = tiling.input_bytes + tiling.output_bytes
        yield failed(
            "UB_TOO_SMALL_FOR_TILE",
            f"one column needs {need} bytes of a unified buffer of {chip.ub_size}",
        )


def _plain_conv(run: Run, source: Extent, chip: DvChip) -> Refusals:
    """Rules 4 and 5; the driver does not ask them of depthwise and transposed convolutions."""
    if not run.weight_buf.mem:
        yield failed("WEIGHT_NULL", "weight_buf.mem is NULL")
    kernel, pad = run.kernel, run.conv_pad
    if not all(1 <= k <= chip.max_kernel_size for k in kernel):
        yield failed("KERNEL_SIZE", f"kernel {kernel.x} x {kernel.y} is outside 1 to {chip.max_kernel_size}")
    if not min(run.conv_stride):
        yield failed("CONV_STRIDE0", "conv_stride is 0")
    if kernel.x > pad.left + source.w + pad.right or kernel.y > pad.top + source.h + pad.bottom:
        yield failed("INPUT_TOO_SMALL", f"kernel {kernel.x} x {kernel.y} is larger than the padded input")


def _pool(run: Run, source: Extent, chip: DvChip) -> Refusals:
    """Rule 7. The window is compared with the input of the run, even when a convolution comes first."""
    kind, size, pad = run.pool_enable, run.pool_size, run.pool_pad
    if kind in (Pool.NONE, Pool.UPSAMPLE):
        return
    if kind not in (Pool.MAX, Pool.AVERAGE):
        yield failed("POOL_ENABLE", f"pool_enable {kind} is unknown; 0, 1, 2 and 4 are known")
    if kind == Pool.MAX and not (2 <= size.x <= 3 and 1 <= size.y <= 3):
        yield failed(
            "MAXPOOL_SIZE", f"max pooling window {size.x} x {size.y}: width 2 to 3 and height 1 to 3 can be used"
        )
    if kind == Pool.AVERAGE and not all(1 <= k <= chip.max_kernel_size for k in size):
        yield failed(
            "AVGPOOL_SIZE", f"average pooling window {size.x} x {size.y}: 1 to {chip.max_kernel_size} can be used"
        )
    if not min(run.pool_stride):
        yield failed("POOL_STRIDE0", "pool_stride is 0")
    if size.x > pad.left + source.w + pad.right or size.y > pad.top + source.h + pad.bottom:
        yield failed("POOL_TOO_SMALL", f"pooling window {size.x} x {size.y} is larger than the padded input")
    if size.x != size.y and not chip.is_current:
        yield failed(
            "SVN_NONSQUARE_POOL", f"a window that is not square needs device revision 93, not {chip.svn_version}"
        )


def _dilated(command: ConvCommand, run: Run, source: Extent, chip: DvChip) -> Refusals:
    """Rule 10; the driver looks at the dilation even where the convolution is off."""
    if command.is_multi_run:
        yield failed("DIL_MULTIRUN", "a dilated convolution must be alone in its command")
    if run.pool_enable:
        yield failed("DIL_POOL", "a dilated convolution cannot share its run with pooling")
    if not all(k % 2 for k in run.kernel):
        yield failed("DIL_EVEN", f"a dilated kernel must be odd, not {run.kernel.x} x {run.kernel.y}")
    span, pad, stride = effective_kernel(run), run.conv_pad, run.conv_stride
    if span.x > pad.left + source.w + pad.right or span.y > pad.top + source.h + pad.bottom:
        yield failed("DIL_INPUT_TOO_SMALL", f"the dilated kernel spans {span.x} x {span.y}, more than the padded input")
    wide = max(pad.left, pad.right) > source.w or max(pad.top, pad.bottom) > source.h
    if wide and not chip.has_wide_dilated_pads:
        yield failed("SVN_DIL_PAD", "pads of a dilated convolution larger than the input need a newer device revision")
    if run.is_deconv and stride != (1, 1):
        yield failed("DIL_DECONV_STRIDE", "a dilated transposed convolution must have stride 1")
    width = conv_out(source.w, span.x, pad.left, pad.right, stride.x, run.is_deconv) * stride.x
    height = conv_out(source.h, span.y, pad.top, pad.bottom, stride.y, run.is_deconv) * stride.y
    if (width, height) != (source.w, source.h):
        yield failed(
            "DIL_SAME", f"result times stride must be the input size, {source.w} x {source.h}: {width} x {height}"
        )
    if run.actfunc == Activation.PRELU:
        yield failed("DIL_PRELU", "PReLU cannot be combined with a dilated convolution")


def multi_run(command: ConvCommand, chip: DvChip) -> Refusals:
    """Rules of commands with more than one run."""
    for index, link in enumerate(chain(command)):
        if link.source.z > 1 or link.run.pz > 1 or link.run.is_dilated:
            yield failed("MULTIRUN_INVALID", f"run {index}: depth and dilation need a command of their own")
    need = chain_need(command)
    if need > chip.ub_size:
        yield failed("UB_MULTIRUN_OVERFLOW", f"the runs need {need} bytes of a unified buffer of {chip.ub_size} bytes")


def _buffers(command: ConvCommand, size_of: SizeOf) -> Refusals:
    """The driver asks only half of the input (one byte per element); the kernel asks all of it at commit."""
    links = chain(command)
    total = sum(link.out.bytes for link in links if link.external)
    yield from check_buffer("input_buf", command.input_buf, command.w * command.h * command.c * command.z, size_of)
    for index, link in enumerate(links):
        if link.run.has_conv:
            need = weight_bytes(link.run, link.source.c)
            yield from check_buffer(f"run {index}: weight_buf", link.run.weight_buf, need, size_of)
    yield from check_buffer("output_buf", command.output_buf, total, size_of)
    if command.eltwise_buf.mem:
        yield from check_buffer("eltwise_buf", command.eltwise_buf, total, size_of)


def check_buffer(name: str, buf: Buf, need: int, size_of: SizeOf, align: int = 2) -> Refusals:
    """A buffer exists, begins at a multiple of `align` bytes and holds `need` bytes after its offset."""
    if not buf.mem:
        yield Refusal(errno.EINVAL, "BUF_NULL", f"{name}.mem is NULL")
    if buf.offs % align:
        yield Refusal(errno.EINVAL, f"BUF_ALIGN{align}", f"{name}.offs {buf.offs} is not a multiple of {align}")
    size = size_of(buf.mem)
    if size < buf.offs + need:
        yield Refusal(
            errno.EINVAL, "BUF_SPACE", f"{name} needs {need} bytes from offset {buf.offs}; its memory has {size}"
        )
    if need <= 0:
        yield failed("BUF_EMPTY", f"{name} would hold no data")
