"""Columns of rows in lanes joined and taken in local memory, each part by one copy of the execution units."""

from __future__ import annotations

from itertools import accumulate

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.kernels.base import dims4, item_bytes
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.places.shape import Concat, Slice


def has_columns(machine: LaneMachine, op: TensorOp) -> bool:
    """Whether the chip keeps rows in lanes, and all of an op's maps as they are, element by element."""
    chip, item = machine.chip, item_bytes(op.results[0])
    values = (*op.operands, *op.results)
    alone = chip.word_item(item) == item and chip.image_slots(item) == 1
    return bool(chip.rows_in_lanes and alone and all(v.type.rank == 4 and chip.fits_fields(v.shape) for v in values))


def take_columns(machine: LaneMachine, op: Slice, box: Box) -> TileWork | None:
    """A slice of columns, `box` of its result, from whole rows."""
    chip, item = machine.chip, item_bytes(op.result)
    around: Box = (*box[:3], (0, op.x.shape[3]))
    before, after = extents(around), extents(box)
    first, by = op.starts[3] + box[3][0], chip.aligned_strides(before, item=item)

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        source = Words(ins[0] + item * first, after, by, within=chip.plane(ins[0], before, item), item=item)
        build.copy(source, Words(outs[0], after, within=chip.plane(outs[0], after, item), item=item))

    inputs = (machine.activation_in(op.x, dims4(op.x), around),)
    out = machine.activation_out(op.result, dims4(op.result), box)
    work = TileWork(inputs, (out,), (), compute, machine.cycles.pass_cycles(after, item))
    return work if machine.fits(work) else None


def join_columns(machine: LaneMachine, op: Concat, box: Box) -> TileWork | None:
    """Concatenation along columns of a `box` with all of them."""
    chip, item, total = machine.chip, item_bytes(op.result), extents(box)
    widths = [value.shape[3] for value in op.operands]
    starts = [0, *accumulate(widths)][:-1]
    boxes: list[Box] = [(*box[:3], (0, width)) for width in widths]
    to = chip.aligned_strides(total, item=item)

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        written = chip.plane(outs[0], total, item)
        for place, start, part in zip(ins, starts, map(extents, boxes)):
            source = Words(place, part, within=chip.plane(place, part, item), item=item)
            build.copy(source, Words(outs[0] + item * start, part, to, within=written, item=item))

    inputs = tuple(machine.activation_in(v, dims4(v), part) for v, part in zip(op.operands, boxes))
    out = machine.activation_out(op.result, dims4(op.result), box)
    cycles = sum(machine.cycles.pass_cycles(extents(part), item) for part in boxes)
    work = TileWork(inputs, (out,), (), compute, cycles)
    return work if machine.fits(work) else None
