"""Heads of rows in local memory: rows stay in their lanes, whose parts become images, or come from them."""

from __future__ import annotations

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import Shape
from bmcompiler.backends.lanes.kernels.base import is_activation, item_bytes
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.groups.regions import RANK
from bmcompiler.codegen.tiling import TileWork
from bmcompiler.ops.places.shape import Permute

_SWAPS = ((1, 0, 2), (0, 2, 1, 3))
"""Orders of the axes of more than one element; the first of four is that of images."""


def heads_inside(machine: LaneMachine, op: Permute) -> TileWork | None:
    """A permutation (N, A, B, C) to (N, B, A, C) as one tile, the longer one of A and B in lanes; None for others."""
    chip, x, item = machine.chip, op.operands[0], item_bytes(op.result)
    alone = chip.word_item(item) == item <= max(chip.word, chip.most_item)
    sizes = [size for size in x.shape if size > 1]
    if not alone or not is_activation(x) or _moved(op) not in _SWAPS:
        return None
    images, a, b, c = (1, *sizes)[-RANK:]
    heads, rows = min(a, b), max(a, b)
    apart: Shape = (images * heads, rows, 1, c)
    side_by_side: Shape = (images, rows, 1, heads * c)
    image, channel, _, _ = chip.aligned_strides(apart, item=item)
    whole, wide, _, _ = chip.aligned_strides(side_by_side, item=item)
    copied: Shape = apart if images == 1 else (images, rows, heads, c)
    steps = (image, channel, c, 1), (c, wide, c, 1)
    if images > 1:
        steps = (heads * image, channel, image, 1), (whole, wide, c, 1)
    source, target = ((apart, side_by_side), (side_by_side, apart))[a >= b]
    by, to = steps if a < b else steps[::-1]
    limits = (*source, *target, *by, *to)
    if not (chip.fits_fields(apart) and chip.fits_fields(copied)) or max(limits) > chip.most_size:
        return None

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        read, written = chip.plane(ins[0], source, item), chip.plane(outs[0], target, item)
        out = Words(outs[0], copied, to, within=written, item=item)
        build.copy(Words(ins[0], copied, by, within=read, item=item), out)

    boxes = [tuple((0, size) for size in view) for view in (source, target)]
    inputs = (machine.activation_in(x, source, boxes[0]),)
    outputs = (machine.activation_out(op.result, target, boxes[1]),)
    work = TileWork(inputs, outputs, (), compute, machine.cycles.pass_cycles(copied, item))
    return work if machine.fits(work) else None


def _moved(op: Permute) -> tuple[int, ...]:
    """The order of the axes of more than one element, counted among themselves."""
    kept = [axis for axis, size in enumerate(op.operands[0].shape) if size > 1]
    return tuple(kept.index(axis) for axis in op.order if axis in kept)
