"""Tiles of a run and the unified buffer need of a command, as the driver computes them (dv.md 4.3, 4.4)."""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.dv.driver.commands import NO_PADS, ONE, ConvCommand, Pads, Pair, Run
from bmcompiler.backends.dv.driver.geometry import Extent, conv_out, odd_square, quotient
from bmcompiler.backends.dv.driver.structs import ConvEnable, Pool
from bmcompiler.backends.dv.formats.packing_sizes import round_up

_TILE_ELEMENTS = 67_108_864
_GROUP = 8  # channels that lie together
_SMALL = 8  # channels up to which a convolution streams its input


class MapTiling(NamedTuple):
    """Vertical strips in which the device works on a map.

    `tiles` is 0 where even single columns do not fit; the bytes are then those of the last attempt.
    """

    tiles: int
    input_bytes: int
    output_bytes: int


def spread(block: int) -> int:
    """128-bit words of a block of 8 channels: rounded up to 2 modulo 16, against bank conflicts (dv.md 2)."""
    return block + (2 - block) % 16


def stored_elements(w: int, h: int, c: int) -> int:
    """Elements that a map (or strip) of w x h x c takes in the unified buffer."""
    return 8 * round_up(spread(-(-w * h * min(_GROUP, c) // 8)) * -(-c // _GROUP), 16)


def tile_conv(
    extent: Extent,
    m: int,
    kernel: Pair,
    pads: Pads,
    stride: Pair,
    dilation: Pair,
    ub_size: int,
    *,
    deconv: bool = False,
    lrn: bool = False,
) -> MapTiling:
    """Tiles of a convolution (not depthwise) or of LRN: the fewest whose strips fit the unified buffer.

    Args:
        extent: the input; its depth does not count.
        ub_size: bytes; the driver counts whole KiB.
    """
    w, h, _, c = extent
    dilated = max(dilation) > 1
    span = (
        Pair((kernel.x - 1) * dilation.x + 1, (kernel.y - 1) * dilation.y + 1)
        if dilated
        else Pair(odd_square(kernel), odd_square(kernel))
    )
    if not lrn and not dilated and c <= _SMALL and m <= _SMALL:
        return MapTiling(1, 0, 0)
    streams = not lrn and not dilated and c <= _SMALL
    room = (ub_size >> 10) * 512
    oh = conv_out(h, span.y, pads.top, pads.bottom, stride.y, deconv)

    def need(tiles: int) -> tuple[int, int]:
        tw = -(-w // tiles) + span.x - 1
        ow = conv_out(tw, span.x, pads.left, pads.right, stride.x, deconv)
        return stored_elements(tw, h, c), 0 if streams else ow * oh * min(_GROUP, m)

    into = out = 0
    for tiles in range(1, w + 1):
        into, out = need(tiles)
        if into + out <= room:
            return MapTiling(tiles, 2 * into, 2 * out)
    return MapTiling(0, 2 * into, 2 * out)


def tile_lrn(extent: Extent, ub_size: int) -> MapTiling:
    """Tiles of a local response normalisation."""
    return tile_conv(extent, extent.c, ONE, NO_PADS, ONE, ONE, ub_size, lrn=True)


def tile_run(extent: Extent, run: Run, ub_size: int) -> MapTiling:
    """Tiles of a run alone in its command; inside a multi-run command a run must need 1."""
    if run.has_conv and not run.is_depthwise:
        return tile_conv(
            extent, run.m, run.kernel, run.conv_pad, run.conv_stride, run.dilation, ub_size, deconv=run.is_deconv
        )
    if run.has_lrn:
        return tile_lrn(extent, ub_size)
    if run.pool_enable == Pool.NONE:
        return MapTiling(1, 0, 0)
    elements = extent.w * extent.h * min(_GROUP, extent.c)
    return MapTiling(elements // (_TILE_ELEMENTS + 1) + 1, 0, 0)


def chain_need(command: ConvCommand) -> int:
    """Bytes of the unified buffer that a multi-run command needs (dv.md 4.4). Pool strides must not be 0."""
    needs = run_needs(command)
    return max(needs, default=0)


def run_needs(command: ConvCommand) -> list[int]:
    """The unified buffer in bytes that each run of a multi-run command needs while it works."""
    externals = bin(command.topo).count("1")
    needs: list[int] = []
    done = previous_out = previous_full = 0
    w, h, c = command.w, command.h, command.c
    for index, run in enumerate(command.runs):
        from_command = command.reads_command_input(index)
        if from_command:
            w, h, c = command.w, command.h, command.c
        step = _step(w, h, run)
        into = 2 * stored_elements(w, h, c) if from_command else previous_full
        block = spread(-(-step.elements * min(_GROUP, run.m) // 8))
        full = 16 * round_up(block * -(-run.m // _GROUP), 16)
        external = command.writes_external(index)
        need = 16 * block if external else full
        if externals == 1:
            needs.append(into + need)
        else:
            in_offset = 0 if from_command else previous_out
            last_copy = done == externals - 1 and not step.conv
            out_offset = in_offset + (0 if last_copy else into)
            needs.append(out_offset + need)
            previous_out = out_offset
        previous_full = full
        done += external
        w, h, c = step.w, step.h, run.m
    return needs


class _Step(NamedTuple):
    w: int  # result of the run
    h: int
    elements: int  # positions that the run writes to the buffer
    conv: bool


def _step(w: int, h: int, run: Run) -> _Step:
    """Rules 1 to 4 of dv.md 4.4 for an input of w x h."""
    conv, pool = bool(run.conv_enable & ConvEnable.CONV), run.pool_enable
    kernel, pad, stride = run.kernel, run.conv_pad, run.conv_stride
    if pool == Pool.AVERAGE:
        side = run.pool_size.x
        conv, pool = True, Pool.NONE
        kernel, pad, stride = Pair(side, side), run.pool_pad, run.pool_stride
    square = odd_square(kernel)
    left, right, top, bottom = pad
    right, top = right + square - kernel.x, top + square - kernel.y
    if not conv:
        left = right = top = bottom = 0
        stride = ONE
    if pool in (Pool.MAX, Pool.UPSAMPLE):
        more = run.pool_pad
        left, right = left + stride.x * more.left, right + stride.x * more.right
        top, bottom = top + stride.y * more.top, bottom + stride.y * more.bottom
    tw, th = left + w + right, top + h + bottom
    if conv:
        tw, th = quotient(tw - square, stride.x) + 1, quotient(th - square, stride.y) + 1
    pooled = Pair(tw, th)
    if pool == Pool.UPSAMPLE:
        pooled = Pair(2 * tw, 2 * th)
    else:
        size = run.pool_size if pool == Pool.MAX else Pair(0, 0)
        pooled = Pair(*(quotient(t - k, s) + 1 for t, k, s in zip((tw, th), size, run.pool_stride)))
    elements = tw * th if conv else pooled.x * pooled.y
    out = pooled if pool in (Pool.MAX, Pool.UPSAMPLE) else Pair(tw, th)
    return _Step(out.x, out.y, elements, conv)
