"""Feature maps joined and repeated in local memory, as words whatever their elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod

from bmcompiler.backends.bm1684.build import Build, lane_bytes, side_fields
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.hazards import Range
from bmcompiler.backends.bm1684.isa import Direction, Eu, Precision, StrideCode, Task
from bmcompiler.backends.bm1684.kernels.base import (
    BYTES_PER_CYCLE,
    MAX_CHANNELS,
    MAX_SIZE,
    TILE_CYCLES,
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
from bmcompiler.backends.bm1684.layout import Shape, Strides, aligned_strides
from bmcompiler.codegen.groups.regions import Move, Mover, as_shape
from bmcompiler.codegen.tiling import Held, TileWork
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp


def fits_fields(shape: tuple[int, ...]) -> bool:
    """Whether a feature map is small enough for one command."""
    return max(shape) <= MAX_SIZE and shape[1] <= MAX_CHANNELS


class LocalMover(Mover):
    """Copies by the TIU, words whatever the elements."""

    chip = CHIP

    def stored(self, value: Value, dims: Shape) -> tuple[Shape, int]:
        return words_of(dims, item_bytes(value)), 4

    def images_per_element(self, value: Value) -> int:
        return 4 // item_bytes(value) if item_bytes(value) <= 4 else 1

    def reshapes(self, source: Held, target: Held) -> bool:
        """The GDMA copies elements in order, whatever the shapes; images that share words must stay where they are."""
        if not all(isinstance(size, int) for held in (source, target) for size in as_shape(held.layout)):
            return False
        (n, *_), (m, *_) = as_shape(source.layout), as_shape(target.layout)
        return item_bytes(source.value) == 4 or n == m

    def cycles(self, move: Move) -> int:
        if move.reshaped is not None:
            return TILE_CYCLES + 4 * prod(move.shape) // BYTES_PER_CYCLE
        return pass_cycles(move.shape)

    def move(self, source: Held, target: Held) -> Move | None:
        found = super().move(source, target)
        if found is not None and found.reshaped is not None:
            sides = [_in_rows(shape) for shape in (found.shape, found.reshaped)]
            return found if all(fits_fields(shape) for shape in sides) else None
        return found if found is not None and fits_fields(found.shape) else None

    def emit(self, build: Build, move: Move, source: int, target: int) -> None:
        (start, by), (end, to) = move.source, move.target
        reads, writes = [(source, source + move.source_bytes)], [(target, target + move.target_bytes)]
        if move.reshaped is not None:
            fields = _side("src", move.shape, by) | _side("dst", move.reshaped, to)
            transfer_words(build, local_address(source), local_address(target), fields, (reads, writes))
            return
        copy_words(build, move.shape, (source + start, _in_words(by)), (target + end, _in_words(to)), (reads, writes))


def _in_rows(shape: Shape) -> Shape:
    """A shape of a single row, cut into rows that a field can say."""
    n, c, h, w = shape
    rows = next((count for count in range(1, w + 1) if w % count == 0 and w // count <= MAX_SIZE), 1)
    return n, c, h * rows, w // rows


def _side(name: str, shape: Shape, strides: Strides) -> dict[str, int]:
    """Fields of one side of a copy in order, of single rows."""
    n, c, _, _ = _in_words(strides)
    rows = _in_rows(shape)
    return side_fields(name, rows, (n, c, rows[3], 1))


def _in_words(strides: Strides) -> Strides:
    n, c, h, w = (step // 4 for step in strides)
    return n, c, h, w


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
        fields = side_fields("src", part, by) | side_fields("dst", part, to)
        transfer_words(build, local_address(source), local_address(address, lane), fields, (reads, writes))
        return
    copy_words(build, part, (source, by), (address, to), (reads, writes))


def repeat_pixels(op: TensorOp) -> TileWork:
    """Upsampling by whole factors: per image and column of a factor, one copy that reads its rows repeatedly."""
    (down, across), item = op.scale, item_bytes(op.result)
    small, large = dims4(op.x), dims4(op.result)
    boxes = [tuple((0, size) for size in dims) for dims in (small, large)]
    source = activation_in(op.x, small, boxes[0])

    def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        reads, writes = [plane(ins[0], small, item)], [plane(outs[0], large, item)]
        images, c, h, w = words_of(small, item)
        by, to = aligned_strides((images, c, h, w)), aligned_strides(words_of(large, item))
        for image in range(images):
            for column in range(across):
                start = ins[0] + 4 * image * by[0], (w, by[1], 0, 1)
                end = outs[0] + 4 * (image * to[0] + column), (down * to[2], to[1], to[2], across)
                copy_words(build, (h, c, down, w), start, end, (reads, writes))

    out = activation_out(op.result, large, boxes[1])
    return TileWork((source,), (out,), (), compute, pass_cycles(large, item))


def transfer_words(
    build: Build, source: int, target: int, fields: Mapping[str, int], touched: tuple[Sequence[Range], Sequence[Range]]
) -> None:
    """Copy words between two local addresses by the GDMA, which reaches other lanes; `fields`: shapes and strides."""
    reads, writes = touched
    build.gdma(
        reads,
        writes,
        direction=Direction.LOCAL_TO_LOCAL,
        stride_enable=1,
        src_addr=source,
        dst_addr=target,
        **fields,
    )


def copy_words(
    build: Build,
    shape: Shape,
    source: tuple[int, Strides],
    target: tuple[int, Strides],
    touched: tuple[list[Range], list[Range]],
) -> None:
    """Copy words by the TIU; `source` and `target` are addresses with their strides in words."""
    build.tiu(
        touched[0],
        touched[1],
        tsk_typ=Task.TENSOR,
        tsk_eu_typ=Eu.COPY,
        tsk_opd_num=1,
        opt_shift_typ=0,
        opt_res0_prec=Precision.INT32,
        opt_opd0_prec=Precision.INT32,
        short_res0_str=StrideCode.EXPLICIT,
        short_opd0_str=StrideCode.EXPLICIT,
        res0_addr=local_address(target[0]),
        opd0_addr=local_address(source[0]),
        **sizes("res0", shape),
        **strides("res0", target[1]),
        **strides("opd0", source[1]),
    )


def fill_words(build: Build, shape: Shape, address: int, bits: int) -> None:
    """Fill an aligned tensor of words by the TIU, which need not wait for what the transfers are busy with."""
    build.tiu(
        [],
        [plane(address, shape)],
        tsk_typ=Task.TENSOR,
        tsk_eu_typ=Eu.COPY,
        tsk_opd_num=1,
        opt_shift_typ=0,
        opt_res0_prec=Precision.INT32,
        opt_opd0_prec=Precision.INT32,
        opt_opd0_const=1,
        short_res0_str=StrideCode.EXPLICIT,
        short_opd0_str=StrideCode.EXPLICIT,
        res0_addr=local_address(address),
        opd0_addr=bits,
        **sizes("res0", shape),
        **strides("res0", aligned_strides(shape)),
    )
