"""Feature maps joined and enlarged in local memory."""

from __future__ import annotations

from itertools import accumulate

from bmcompiler.backends.bm1880.bmkernel import (
    bmk1880_copy_with_stride_param_t,
    bmk1880_tpu_copy_with_stride,
    stride_t4,
)
from bmcompiler.backends.bm1880.bmkernel.checks import MAX_TPU_DIM, MAX_TPU_HW
from bmcompiler.backends.bm1880.build import Build, Dims, aligned, extents
from bmcompiler.backends.bm1880.chip import CHIP
from bmcompiler.backends.bm1880.kernels.base import activation_in, activation_out, dims4, pass_cycles
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.shape import Upsample


def join_channels(op: TensorOp, box: Box) -> TileWork | None:
    """Concatenation along channels of a `box` with all of them; None when it is too large for one command a part.

    Parts that begin at lane 0 are copied by the TPU, the others from lane to lane by the GDMA, image by image: over
    several images the engine's default strides would be those of another tensor (bm1880.md 2.2).
    """
    total = extents(box)
    if max(total[:2]) > MAX_TPU_DIM or max(total[2:]) > MAX_TPU_HW:
        return None
    counts = [dims4(value)[1] for value in op.operands]
    starts = [0, *accumulate(counts)][:-1]
    boxes: list[Box] = [(box[0], (0, count), *box[2:]) for count in counts]
    inputs = tuple(activation_in(value, dims4(value), part) for value, part in zip(op.operands, boxes))

    def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        for address, part, start in zip(ins, boxes, starts):
            _to_channel(build, extents(part), address, total, outs[0], start)

    return TileWork(inputs, (activation_out(op.result, dims4(op.result), box),), (), compute, pass_cycles(total))


def _to_channel(build: Build, part: Dims, address: int, total: Dims, whole: int, start: int) -> None:
    """Copy the tensor at `address` to channel `start` of the one at `whole`."""
    rows, lane = divmod(start, CHIP.lanes)
    source, strides = aligned(address, part), aligned(whole, total).strides
    place = whole + rows * strides.c
    if not lane:
        param = bmk1880_copy_with_stride_param_t(aligned(place, part), strides, source, source.strides)
        build.tpu(bmk1880_tpu_copy_with_stride, param)
        return
    image = (1, *part[1:])
    for index in range(part[0]):
        to = lane * CHIP.lmem_size + place + index * strides.n
        build.copy_local(aligned(to, image), aligned(address + index * source.strides.n, image))


def repeat_pixels(op: Upsample, box: Box) -> TileWork:
    """The `box` of an upsampling by whole factors: one strided copy per place in a block of equal pixels."""
    factors = op.scale
    spans = [(lo // factor, -(-hi // factor)) for (lo, hi), factor in zip(box[2:], factors)]
    read: Box = (box[0], box[1], *spans)
    dims, out_dims = extents(read), extents(box)

    def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        source, target = aligned(ins[0], dims), aligned(outs[0], out_dims)
        strides = stride_t4(target.strides.n, target.strides.c, out_dims[3] * factors[0], factors[1])
        for row, high in enumerate(_phases(box[2][0], out_dims[2], factors[0])):
            for column, wide in enumerate(_phases(box[3][0], out_dims[3], factors[1])):
                shape = (*dims[:2], high[1], wide[1])
                start = aligned(ins[0] + high[0] * dims[3] + wide[0], shape)
                corner = aligned(outs[0] + row * out_dims[3] + column, shape)
                param = bmk1880_copy_with_stride_param_t(corner, strides, start, source.strides)
                build.tpu(bmk1880_tpu_copy_with_stride, param)

    return TileWork(
        (activation_in(op.x, dims4(op.x), read),),
        (activation_out(op.result, dims4(op.result), box),),
        (),
        compute,
        factors[0] * factors[1] * pass_cycles(dims),
    )


def _phases(first: int, size: int, factor: int) -> list[tuple[int, int]]:
    """For each of the first `factor` pixels from `first`: (which pixel read it repeats, how many pixels are so made).

    Pixels read count from that of pixel `first`.
    """
    return [((first + k) // factor - first // factor, -(-(size - k) // factor)) for k in range(min(factor, size))]
