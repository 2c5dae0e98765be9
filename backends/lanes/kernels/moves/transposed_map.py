"""Channels of a feature map as its last axis, and the way back: lanes transpose what transfers bring or take."""

from __future__ import annotations

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.kernels.base import dims4, is_activation, item_bytes
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.tiling import Buffer, Runs, TileWork
from bmcompiler.ops.places.shape import Permute


def channels_last(machine: LaneMachine, op: Permute) -> TileWork | None:
    """The whole of one map, read where it lies with a channel per lane; None for other permutations."""
    x, chip, item = op.operands[0], machine.chip, item_bytes(op.result)
    if tuple(op.order) != (0, 2, 3, 1) or x.shape[0] != 1 or not chip.fits_fields(x.shape):
        return None
    whole = dims4(x)
    _, channels, height, width = whole
    lanes = max(count for count in range(1, chip.lanes + 1) if height * width % count == 0)
    pixels = height * width // lanes
    planes, transposed = (channels, lanes, 1, pixels), (1, lanes, pixels, channels)
    if not (chip.fits_fields(planes) and chip.fits_fields(transposed)):
        return None
    size, lane = chip.aligned_bytes(transposed, item), chip.aligned_strides(transposed, item=item)[1]

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        by = (0, chip.aligned_strides(whole, item=item)[1], pixels, 1)
        read, between = chip.plane(ins[0], whole, item), (scratch[0], scratch[0] + size)
        source = Words(ins[0], (1, channels, lanes, pixels), by, within=read, item=item)
        build.transfer(source, Words(scratch[0], planes, (pixels, lane, 0, 1), within=between, item=item))
        there = Words(scratch[0], transposed, (0, lane, 1, pixels), within=between, item=item)
        build.copy(there, Words(outs[0], transposed, within=(outs[0], outs[0] + size), item=item))

    def store(build: LaneBuild, address: int) -> None:
        build.store(build.neuron(op.result), transposed, (0, pixels * channels, channels, 1), item, address)

    inputs = (machine.activation_in(x, whole, tuple((0, count) for count in whole)),)
    out = Buffer(size, "nchw", op.type.nbytes, store, runs=Runs(1, lanes))
    moved = machine.cycles.local_copy((1, channels, lanes, pixels), item)
    turning = moved + machine.cycles.pass_cycles(transposed, item)
    work = TileWork(inputs, (out,), (size,), compute, turning, transfers=moved)
    return work if machine.fits(work) else None


def channels_first(machine: LaneMachine, op: Permute) -> TileWork | None:
    """The whole of one map whose rows lie in lanes, pixel by pixel; None for other permutations."""
    x, chip, item = op.operands[0], machine.chip, item_bytes(op.result)
    if tuple(op.order) != (0, 3, 1, 2) or x.shape[0] != 1 or item > max(chip.word, chip.most_item):
        return None
    _, rows, width, channels = dims4(x)
    pixels, planes = (1, rows, width, channels), (1, rows, channels, width)
    apart, result = (channels, rows, 1, width), dims4(op.result)
    if not is_activation(x) or not all(map(chip.fits_fields, (pixels, planes, apart, result))):
        return None
    word, size = chip.word_item(item), chip.aligned_bytes(planes, item)
    lane = chip.aligned_strides(planes, item=word)[1]

    def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
        between = scratch[0], scratch[0] + size
        by = (0, chip.aligned_strides(pixels, item=word)[1], 1, channels)
        read = Words(ins[0], planes, by, within=chip.plane(ins[0], pixels, item), item=word)
        build.copy(read, Words(scratch[0], planes, within=between, item=word))
        there = Words(scratch[0], apart, (width, lane, 0, 1), within=between, item=word)
        build.transfer(there, Words(outs[0], result, within=chip.plane(outs[0], result, item), item=word))

    boxes = [tuple((0, count) for count in shape) for shape in (pixels, result)]
    inputs = (machine.activation_in(x, pixels, boxes[0]),)
    outputs = (machine.activation_out(op.result, result, boxes[1]),)
    moved = machine.cycles.local_copy(result, word)
    cycles = machine.cycles.pass_cycles(planes, item) + moved
    work = TileWork(inputs, outputs, (size,), compute, cycles, transfers=moved)
    return work if machine.fits(work) else None
