"""Sizes of the result of a run (dv.md 1.6), and the chain of results inside a command.

Divisions truncate towards zero as in C: the driver computes these numbers before it knows that a command is sound.
"""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.dv.driver.commands import ConvCommand, Pair, Run
from bmcompiler.backends.dv.driver.structs import Pool
from bmcompiler.backends.dv.formats.packing_sizes import conv_size, dilated_size

_DEPTH = 0x7F  # bits of the kernel depth that the device uses


class Extent(NamedTuple):
    """Width, height, depth and channels of a feature map."""

    w: int
    h: int
    z: int
    c: int

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.w * self.h * self.z * self.c

    @property
    def bytes(self) -> int:
        """Bytes of all elements, two each (fp16)."""
        return 2 * self.elements


def quotient(a: int, b: int) -> int:
    """a / b of C integers."""
    return a // b if (a >= 0) == (b > 0) else -(-a // b)


def odd_square(kernel: Pair) -> int:
    """Side of the square that the device gives a kernel: the next odd number."""
    return max(kernel) | 1


def effective_kernel(run: Run) -> Pair:
    """Columns and rows that a kernel spans with its dilation."""
    return Pair(*((k - 1) * d + 1 for k, d in zip(run.kernel, run.dilation)))


def conv_out(size: int, kernel: int, before: int, after: int, stride: int, deconv: bool) -> int:
    """Positions of a kernel that spans `kernel` elements; `deconv` inserts stride - 1 zeros between elements."""
    if deconv:
        return before + (size - 1) * stride + 1 + after - kernel + 1
    return quotient(before + size + after - kernel, stride) + 1


def window_out(size: int, window: int, before: int, after: int, stride: int) -> int:
    """Positions of a pooling window, rounded down; a framework that rounds up enlarges the pad after."""
    return quotient(before + size + after - window, stride) + 1


def after_conv(extent: Extent, run: Run) -> Extent:
    """Result of the convolution of a run, or its input when it has none."""
    if not run.has_conv:
        return extent._replace(c=run.m)
    span, pad, stride = effective_kernel(run), run.conv_pad, run.conv_stride
    return Extent(
        conv_out(extent.w, span.x, pad.left, pad.right, stride.x, run.is_deconv),
        conv_out(extent.h, span.y, pad.top, pad.bottom, stride.y, run.is_deconv),
        extent.z - (run.pz & _DEPTH) + 1,
        run.m,
    )


def after_pool(extent: Extent, run: Run) -> Extent:
    """Result of the pooling or upsampling of a run."""
    if run.pool_enable == Pool.UPSAMPLE:
        return extent._replace(w=2 * extent.w, h=2 * extent.h)
    if run.pool_enable not in (Pool.MAX, Pool.AVERAGE):
        return extent
    pad, size, stride = run.pool_pad, run.pool_size, run.pool_stride
    return extent._replace(
        w=window_out(extent.w, size.x, pad.left, pad.right, stride.x),
        h=window_out(extent.h, size.y, pad.top, pad.bottom, stride.y),
    )


def result(extent: Extent, run: Run) -> Extent:
    """What a run writes for an input of `extent`."""
    return after_pool(after_conv(extent, run), run)


def strides_are_zero(run: Run, multi_run: bool) -> bool:
    """A stride that the driver's formulas divide by is 0 (dv.md 1.8)."""
    conv = run.has_conv and min(run.conv_stride) == 0
    pool = (multi_run or run.pool_enable in (Pool.MAX, Pool.AVERAGE)) and min(run.pool_stride) == 0
    return conv or pool


def weight_bytes(run: Run, channels: int) -> int:
    """Packed weights that a run reads; 0 without convolution (dv.md 3.6)."""
    if not run.has_conv:
        return 0
    channels = 1 if run.is_depthwise else channels
    if run.is_dilated:
        return dilated_size(channels, run.kernel.x, run.kernel.y, run.m, run.is_quantized, run.has_prelu_stream)
    return conv_size(channels, run.kernel.x, run.kernel.y, run.m, run.is_quantized, run.has_prelu_stream)


class Link(NamedTuple):
    """Input and result of one run of a command."""

    run: Run
    external: bool
    source: Extent
    out: Extent


def chain(command: ConvCommand) -> list[Link]:
    """Every run of a command with its extents. Strides must not be 0 (`strides_are_zero`)."""
    first = Extent(command.w, command.h, command.z, command.c)
    links: list[Link] = []
    source = first
    for index, run in enumerate(command.runs):
        out = result(source, run)
        external = command.writes_external(index)
        links.append(Link(run, external, source, out))
        source = first if external else out
    return links
