"""Bands of bytes from floats of global memory: band by band, each rounded while the next one is loaded.

Rows lie in lanes, whose execution units are busy so, and from where windows are folded
(`lanes.kernels.moves.lane_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import prod
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.bm1684.build import Build
from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.instructions.transfers import Side, in_lane, transfer
from bmcompiler.backends.bm1684.isa import Direction
from bmcompiler.backends.bm1684.packed.conv_int import IntConvKernel
from bmcompiler.backends.lanes.counts import run_of
from bmcompiler.backends.lanes.cycles import LaneCycles
from bmcompiler.backends.lanes.kernels.base import LocalKernel, dims4
from bmcompiler.backends.lanes.kernels.functions.convert import quantizing
from bmcompiler.backends.lanes.kernels.moves.lane_rows import LaneRows, lane_rows
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.operands import Immediate, Words
from bmcompiler.backends.lanes.recipes import Steps
from bmcompiler.backends.lanes.units import Unit
from bmcompiler.codegen.build import dense_strides
from bmcompiler.codegen.tiling import Axis, Box, Buffer, Runs, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.ops.places.bands import QuantizeBands
from bmcompiler.target import rule

_SLOTS = 4
_BYTE = 0xFF


class QuantizeBandsKernel(LocalKernel[QuantizeBands]):
    """quantize_bands, in one tile, with a place for the floats of each band."""

    ops = (QuantizeBands,)
    asks_readers = True

    @rule("The operand must be an input of the net, in f32")
    def input_of_net(self, op: QuantizeBands) -> bool:
        return op.x.op is None and op.x.dtype == "f32"

    @rule("The result must be up to four bands of i8 or u8 with one scale")
    def known_result(self, op: QuantizeBands) -> bool:
        quant = op.type.quant
        return op.bands <= _SLOTS and op.type.dtype in ("i8", "u8") and quant is not None and not quant.scales

    @rule("Outside of the image must stand what 0.0 becomes", got="fill")
    def known_fill(self, op: QuantizeBands) -> bool:
        return op.type.quant is not None and op.fill == op.type.quant.zero_point

    @rule("The result must be read by one convolution alone, which folds rows that it steps over by the same stride")
    def folded(self, op: QuantizeBands) -> bool:
        users = [use[0] for use in op.result.uses]
        return len(users) == 1 and isinstance(users[0], Conv) and _folds(self.machine, users[0], op.stride)

    @rule("Rows that lie together must fit the fields of a command")
    def fields(self, op: QuantizeBands) -> bool:
        return CHIP.fits_fields(LaneRows(dims4(op.result), op.stride).words)

    def evaluate(self, op: QuantizeBands, *arrays: Array) -> Array:
        (x,) = arrays
        integers: np.ndarray = self._steps(op).integers(x).astype(op.type.numpy)
        return op.cut(integers, op.bands)

    def _steps(self, op: QuantizeBands) -> Steps:
        recipe, *arguments = quantizing(op.rounding, op.type)
        return self.machine.recorded(recipe, 1, *arguments)

    def grid(self, op: QuantizeBands) -> tuple[Axis, ...]:
        """A single tile."""
        n, c, h, w = (Axis(size, cuts=False) for size in op.type.shape)
        return n, c, h, w

    def work(self, op: QuantizeBands, box: Box) -> TileWork:
        layout = lane_rows(op.result)
        assert layout is not None, "a rule of the kernel asks for bands"
        steps, words, bands = self._steps(op), layout.words, [_Band(op, layout, k) for k in range(op.bands)]
        plane = CHIP.aligned_bytes(words)

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            integers, *registers = scratch
            for band, area in zip(bands, ins):
                steps.emit(build, words, [area], integers, registers)
                band.put(build, integers, outs[0])

        def store(build: Build, address: int) -> None:
            _store(build, op, layout, address)

        *before, cycles = accumulate(
            (steps.cycles(words) + band.putting(self.machine.cycles) for band in bands), initial=0
        )
        inputs = tuple(
            Buffer(plane, "nchw", band.nbytes, band.load, runs=band.runs, late=late)
            for band, late in zip(bands, before)
        )
        out = Buffer(plane, "nchw", op.type.nbytes, store, contents=layout.contents(op.result), runs=layout.runs)
        return TileWork(inputs, (out,), (plane,) * (1 + steps.registers), compute, cycles)


def _folds(machine: LaneMachine, conv: Conv, stride: int) -> bool:
    """Whether windows of a convolution of bytes are folded, from rows `stride` apart, none of them in the padding."""
    kernel = IntConvKernel(machine)
    plain = conv.pads[:2] == (0, 0) and conv.dilations[0] == 1 and conv.strides[0] == stride
    return plain and kernel.unsupported_reason(conv) is None and kernel.folds_rows(conv)


class _Part(NamedTuple):
    """Rows of a band: `phases` from `phase` on of each of `lanes` lanes from `lane` on."""

    lane: int
    lanes: int
    phase: int
    phases: int


class _Band(NamedTuple):
    """A band of the image on its way to its byte of the words."""

    op: QuantizeBands
    layout: LaneRows
    number: int

    @property
    def first(self) -> int:
        """The row of the image that is the first of the band."""
        op = self.op
        return int(self.number * op.rows - op.top)

    @property
    def seen(self) -> tuple[int, int]:
        """The rows of its lanes that are in the image, from the first one on."""
        end = self.layout.words[1] * self.layout.step
        return max(0, -self.first), min(end, self.op.x.shape[2] - self.first)

    def parts(self) -> Iterator[_Part]:
        """What is loaded: lanes with all of their rows, and those before and after with some."""
        (lo, hi), step = self.seen, self.layout.step
        if lo >= hi:
            return
        first, end = -(-lo // step), hi // step
        if first > end:
            yield _Part(end, 1, lo % step, hi - lo)
            return
        if lo % step:
            yield _Part(first - 1, 1, lo % step, step - lo % step)
        if first < end:
            yield _Part(first, end - first, 0, step)
        if hi % step:
            yield _Part(end, 1, 0, hi % step)

    @property
    def is_partial(self) -> bool:
        """Whether some of its rows are not in the image."""
        return self.seen != (0, self.layout.words[1] * self.layout.step)

    def _shape(self, part: _Part) -> tuple[tuple[int, int, int, int], tuple[int, int, int, int]]:
        """Floats of a part, and their strides in global memory."""
        _, channels, _, width = self.layout.shape
        _, channel, row, _ = dense_strides(dims4(self.op.x))
        return (channels, part.lanes, part.phases, width), (channel, self.layout.step * row, row, 1)

    def load(self, build: Build, address: int) -> None:
        """Load its floats; what is not in the image is 0.0."""
        words, (_, channels, _, width) = self.layout.words, self.layout.shape
        touched, by = CHIP.plane(address, words), CHIP.aligned_strides(words)
        if self.is_partial:
            build.fill(Words(address, words, within=touched), 0)
        for part in self.parts():
            shape, strides = self._shape(part)
            above, lane = divmod(part.lane, CHIP.lanes)
            start = (self.first + part.lane * self.layout.step + part.phase) * width
            place = address + CHIP.word * (above * by[1] + part.phase * channels * width)
            inner = in_lane(place, shape, (width, by[1], channels * width, 1), touched, lane=lane)
            source = Side(build.source(self.op.x) + CHIP.word * start, shape, strides)
            transfer(build, Direction.SYSTEM_TO_LOCAL, source, inner)

    def put(self, build: Build, integers: int, target: int) -> None:
        """Put the low bytes of words into those of the band."""
        words = self.layout.words
        part, whole = (Words(address, words, within=CHIP.plane(address, words)) for address in (integers, target))
        if not self.number:
            build.combine(Unit.AND, whole, part, Immediate(_BYTE))
            return
        if self._masked:
            build.combine(Unit.AND, part, part, Immediate(_BYTE))
        build.combine(Unit.SHIFT, part, part, Immediate(8 * self.number))
        build.combine(Unit.OR, whole, whole, part)

    @property
    def _masked(self) -> bool:
        """Whether a shift leaves something above its byte."""
        return self.number < _SLOTS - 1

    def putting(self, cycles: LaneCycles) -> int:
        """Cycles of `put`."""
        one = cycles.pass_cycles(self.layout.words)
        pair = cycles.pass_cycles(self.layout.words, pair=True)
        return one + pair + one * self._masked if self.number else one

    @property
    def nbytes(self) -> int:
        """Of what is loaded."""
        return CHIP.word * sum(prod(self._shape(part)[0]) for part in self.parts())

    @property
    def runs(self) -> Runs:
        """In which its bytes move."""
        found = [self._shape(part) for part in self.parts()]
        return Runs(sum(prod(s) // int(run_of(s, by)) for s, by in found), sum(prod(s[:3]) for s, _ in found))


def _store(build: Build, op: QuantizeBands, layout: LaneRows, address: int) -> None:
    """Store the bands as dense tensors, a command for each of them and for each row of a lane."""
    (bands, channels, height, width), words = layout.shape, layout.words
    band, channel, row, _ = dense_strides(layout.shape)
    lane, touched = CHIP.word * CHIP.aligned_strides(words)[1], CHIP.plane(address, words)
    for number in range(bands):
        for phase in range(min(layout.step, height)):
            shape = channels, -(-(height - phase) // layout.step), 1, width
            place = address + CHIP.word * phase * channels * width
            inner = in_lane(place, shape, (CHIP.word * width, lane, 0, CHIP.word), touched, byte=number)
            target = build.neuron(op.result) + number * band + phase * row
            outer = Side(target, shape, (channel, layout.step * row, row, 1))
            transfer(build, Direction.LOCAL_TO_SYSTEM, inner, outer, 1)
