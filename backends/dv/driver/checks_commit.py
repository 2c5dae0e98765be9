"""What the kernel module refuses when a list of CONV commands is committed (dv.md 1.7, last paragraph)."""

from __future__ import annotations

from bmcompiler.backends.dv.chip import DvChip
from bmcompiler.backends.dv.driver.checks import (
    Refusal,
    Refusals,
    SizeOf,
    check_buffer,
    check_table,
    failed,
    first,
    structure,
)
from bmcompiler.backends.dv.driver.commands import ConvCommand, FcCommand
from bmcompiler.backends.dv.driver.geometry import chain, weight_bytes
from bmcompiler.backends.dv.formats.packing_sizes import fc_size

WEIGHT_ALIGN = 16


def check_conv_commit(command: ConvCommand, chip: DvChip, size_of: SizeOf) -> Refusal | None:
    """Alignment of weights, the whole size of every buffer, the kernel field of every run, and all limits again."""
    return first(_conv(command, chip, size_of))


def _conv(command: ConvCommand, chip: DvChip, size_of: SizeOf) -> Refusals:
    limit = chip.max_kernel_size
    for index, run in enumerate(command.runs):
        if not all(1 <= k <= limit for k in run.kernel):
            yield failed(
                "KERNEL_SIZE",
                f"run {index}: p {run.kernel.x} x {run.kernel.y} is outside 1 to {limit}, which is asked of every run",
            )
    yield from structure(command, chip)
    links = chain(command)
    refusal = check_table(command, size_of, WEIGHT_ALIGN)
    if refusal:
        yield refusal
    width = 1 if command.u8_table.mem else 2
    pixels = command.w * command.h * command.z * command.c
    yield from check_buffer("input_buf", command.input_buf, width * pixels, size_of)
    for index, link in enumerate(links):
        if link.run.has_conv:
            need = weight_bytes(link.run, link.source.c)
            yield from check_buffer(f"run {index}: weight_buf", link.run.weight_buf, need, size_of, WEIGHT_ALIGN)
    total = sum(link.out.bytes for link in links if link.external)
    yield from check_buffer("output_buf", command.output_buf, total, size_of)
    if command.eltwise_buf.mem:
        yield from check_buffer("eltwise_buf", command.eltwise_buf, total, size_of)


def check_fc_commit(command: FcCommand, size_of: SizeOf) -> Refusal | None:
    """Alignment of the weights, which are read at commit where CONV runs the command (dv.md 1.5)."""
    need = fc_size(command.input_size, command.output_size, command.is_quantized)
    return first(check_buffer("weight_buf", command.weight_buf, need, size_of, WEIGHT_ALIGN))
