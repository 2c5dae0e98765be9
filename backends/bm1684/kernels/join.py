"""Feature maps joined along channels in local memory."""

from __future__ import annotations

from itertools import accumulate

from bmcompiler.backends.bm1684.build import Build, lane_bytes, side_fields
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import Direction, Eu, Precision, StrideCode, Task
from bmcompiler.backends.bm1684.kernels.base import (
    MAX_CHANNELS,
    MAX_SIZE,
    activation_in,
    activation_out,
    dims4,
    item_bytes,
    pass_cycles,
    plane,
    sizes,
    strides,
    words_of,
)
from bmcompiler.backends.bm1684.layout import Shape, aligned_strides
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ops.base import TensorOp


def fits_fields(shape: tuple[int, ...]) -> bool:
    """Whether a feature map is small enough for one command."""
    return max(shape) <= MAX_SIZE and shape[1] <= MAX_CHANNELS


def join_channels(op: TensorOp) -> TileWork:
    """Concatenation along channels: parts that begin at lane 0 are copied by the TIU, the others by transfers."""
    item, total = item_bytes(op.result), dims4(op.result)
    parts = [dims4(value) for value in op.operands]
    starts = [0, *accumulate(part[1] for part in parts)][:-1]
    boxes = [tuple((0, size) for size in dims) for dims in (*parts, total)]
    inputs = tuple(activation_in(v, dims4(v), box) for v, box in zip(op.operands, boxes))

    def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        for place, part, start in zip(ins, parts, starts):
            _copy(build, words_of(part, item), place, words_of(total, item), outs[0], start)

    return TileWork(inputs, (activation_out(op.result, total, boxes[-1]),), (), compute, pass_cycles(total, item))


def _copy(build: Build, part: Shape, source: int, total: Shape, target: int, start: int) -> None:
    """Copy the words of a part to channel `start` of the whole."""
    row, lane = divmod(start, CHIP.lanes)
    by, to = aligned_strides(part), aligned_strides(total)
    address = target + 4 * row * to[1]
    reads, writes = [plane(source, part)], [(target, target + lane_bytes(total))]
    if lane:
        build.gdma(
            reads,
            writes,
            direction=Direction.LOCAL_TO_LOCAL,
            stride_enable=1,
            src_addr=local_address(source),
            dst_addr=local_address(address, lane),
            **side_fields("src", part, by),
            **side_fields("dst", part, to),
        )
        return
    build.tiu(
        reads,
        writes,
        tsk_typ=Task.TENSOR,
        tsk_eu_typ=Eu.COPY,
        tsk_opd_num=1,
        opt_shift_typ=0,
        opt_res0_prec=Precision.INT32,
        opt_opd0_prec=Precision.INT32,
        short_res0_str=StrideCode.EXPLICIT,
        short_opd0_str=StrideCode.EXPLICIT,
        res0_addr=local_address(address),
        opd0_addr=local_address(source),
        **sizes("res0", part),
        **strides("res0", to),
        **strides("opd0", by),
    )
