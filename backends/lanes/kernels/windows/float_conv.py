"""Convolution and transposed convolution of floats, dense, grouped and depthwise: one instruction per tile."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.kernels.base import dims4, is_constant, item_bytes
from bmcompiler.backends.lanes.kernels.channel_constants import Joined, Span, bias_buffer, channel_buffer, joined_buffer
from bmcompiler.backends.lanes.kernels.functions.fused_activation import activate, activation_cycles, emit_activation
from bmcompiler.backends.lanes.kernels.windows import winograd, winograd_arithmetic, winograd_cells
from bmcompiler.backends.lanes.kernels.windows.conv_geometry import ConvGeometry
from bmcompiler.backends.lanes.kernels.windows.sliding import Slide
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box, Buffer, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.nn import Conv, Convolution
from bmcompiler.target import rule

Placed = Callable[[Sequence[int]], tuple[list[int], list[Span]]]
"""Of the addresses of inputs: those of the pixels, of a bias if there is one, and of the weights, with their bytes."""


class FloatConvKernel(ConvGeometry):
    """Base: a chip says how weights lie, which command sums, and in which order."""

    ops: tuple[type[Convolution], ...] = (Conv,)

    @rule("Weights and bias must be constants, but those of a depthwise convolution")
    def constant_weights(self, op: Convolution) -> bool:
        return (self.is_depthwise(op) and isinstance(op, Conv)) or super().constant_weights(op)

    @rule("Input, weights, bias and result must be f32")
    def known_types(self, op: Convolution) -> bool:
        return all(v.dtype == "f32" for v in (*op.operands, op.result))

    # -- what a chip says ----------------------------------------------------------------------------------------------
    @abstractmethod
    def dense_row(self, op: Convolution) -> tuple[int, int]:
        """Rows and columns of weights of an output channel of a dense convolution."""

    def runs(self, op: Convolution) -> tuple[int, int]:
        """(length, distance) in bytes of runs of weights, between which there are gaps; (0, 0) without."""
        return 0, 0

    @abstractmethod
    def pack(self, weight: np.ndarray) -> np.ndarray:
        """Weights (O, I, KH, KW) of a dense convolution in the order of the chip, output channels first."""

    @abstractmethod
    def emit_sums(
        self,
        op: Convolution,
        build: Any,
        slide: Slide,
        places: Sequence[int],
        target: Words,
        reads: Sequence[Span],
    ) -> None:
        """Emit the command; places: of input, bias, if there is one, and weights. reads: their bytes."""

    @abstractmethod
    def sums(
        self, op: Convolution, window: Window, x: np.ndarray, kernels: np.ndarray, bias: np.ndarray | None
    ) -> np.ndarray:
        """Results (N, O, OH, OW) of one group of a dense convolution in the chip's order, weights (O, I, KH, KW)."""

    @abstractmethod
    def depthwise_sums(
        self, op: Convolution, window: Window, x: np.ndarray, kernels: np.ndarray, bias: np.ndarray | None
    ) -> np.ndarray:
        """The same of a depthwise convolution, weights (C, KH * KW)."""

    # -- a tile --------------------------------------------------------------------------------------------------------
    def whole_work(self, op: Convolution, box: Box) -> TileWork:
        """With weights and bias in one load, where that pays."""
        return self.work(op, box, whole=True)

    def work(self, op: Convolution, box: Box, whole: bool = False) -> TileWork:
        if winograd.suits(self.chip, op):
            return winograd.work(self, op, box)
        depthwise, dims = self.is_depthwise(op), extents(box)
        item, dtype = item_bytes(op.input), op.result.dtype
        c0, c1 = box[1]
        slide = self.slide(op, box, self.channels(op, c0, c1))
        shares = self._shares(op, box)
        joined = self._joined(op, c0, c1) if whole and len(shares) == 1 else None
        inputs = [self.input_buffer(op, [slide], "nchw" if op.group > 1 else "nhw")]
        if op.bias is not None and joined is None:  # before the weights: the first share of them needs it
            inputs.append(bias_buffer(self.chip, op.bias, c0, c1))
        inputs.append(self._weights(op, c0, c1, shares) if joined is None else joined.buffer)

        def placed(ins: Sequence[int], share: Span) -> tuple[list[int], list[Span]]:
            places, reads = self._share_places(op, ins, inputs, share)
            if joined is not None:
                places.insert(1, ins[-1] + joined.bias)
                reads[-1] = ins[-1], ins[-1] + joined.buffer.lane_bytes
            return places, reads

        if winograd_cells.axis_of(self, op) is not None:
            return winograd_cells.work(self, op, box, slide, inputs, lambda ins: placed(ins, shares[0]))
        apart = () if depthwise else self.apart(op, dims, item)

        def compute(build: LaneBuild, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            for share in shares:
                (places, reads), (first, end) = placed(ins, share), share
                place = outs[0] + first // self.chip.lanes * self.chip.strides(dims, item)[1]
                target = Words(place, (dims[0], end - first, *dims[2:]), item=item, dtype=dtype)
                self.emit_sums(op, build, slide, places, target, reads)
            emit_activation(build, op.activation, Words(outs[0], dims, item=item, dtype=dtype))

        return TileWork(
            tuple(inputs),
            (self.machine.activation_out(op.result, dims4(op.result), box),),
            (),
            compute,
            self.sum_cycles(op, dims, slide, item) + activation_cycles(self.machine.cycles, op.activation, dims, item),
            tuple(pair._replace(second=len(inputs) - 1) for pair in apart),
        )

    def _row_bytes(self, op: Convolution) -> int:
        """Bytes of the weights of a channel."""
        rows, columns = self.taps(op) if self.is_depthwise(op) else self.dense_row(op)
        return rows * columns * item_bytes(op.weight)

    def _shares(self, op: Convolution, box: Box) -> list[Span]:
        """Channels of a tile, from its first one on, that a command sums while the weights of the next ones arrive."""
        lanes, (images, count, _, _) = self.chip.lanes, extents(box)
        step = lanes * max(1, self.chip.share_bytes // self._row_bytes(op))
        if not self.chip.share_bytes or images > 1 or self.is_depthwise(op):
            return [(0, count)]
        return [(first, min(first + step, count)) for first in range(0, count, step)]

    def _share_places(
        self, op: Convolution, ins: Sequence[int], inputs: Sequence[Buffer], share: Span
    ) -> tuple[list[int], list[Span]]:
        """Addresses of the operands of a share, and the bytes that it reads of them."""
        first, rows = share[0] // self.chip.lanes, -(-(share[1] - share[0]) // self.chip.lanes)
        sizes = [self._row_bytes(op)]
        if op.bias is not None and len(ins) > 2:
            sizes.insert(0, item_bytes(op.bias))
        places = [ins[0], *(place + first * size for place, size in zip(ins[1:], sizes))]
        ends = [inputs[0].read(ins[0])[1], *(place + rows * size for place, size in zip(places[1:], sizes))]
        return places, list(zip(places, ends))

    def _weights(self, op: Convolution, c0: int, c1: int, shares: Sequence[Span]) -> Buffer:
        dims, (layout, pack) = self.taps(op) if self.is_depthwise(op) else self.dense_row(op), self._packed(op)
        item = item_bytes(op.weight)
        return channel_buffer(self.chip, op.weight, layout, lambda build: pack, dims, item, (c0, c1), shares)

    def _joined(self, op: Convolution, c0: int, c1: int) -> Joined | None:
        """Weights and bias as one load; None where that moves so many zeros that two loads are sooner done."""
        row, (layout, pack) = self._row_bytes(op), self._packed(op)
        if (
            op.bias is None
            or not (is_constant(op.weight) and is_constant(op.bias))
            or -(c1 - c0) % self.chip.lanes * row * (c1 - c0 > self.chip.lanes) > self.chip.command_bytes
        ):
            return None
        one = partial(joined_buffer, self.chip, op.weight, op.bias, f"{layout} joined", pack, row, (c0, c1))
        bus, ways = self.tiler.bus, dict.fromkeys(((0, 0), self.runs(op)))
        return min(map(one, ways), key=lambda joined: (bus.load(joined.buffer), joined.buffer.nbytes))

    def _packed(self, op: Convolution) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
        """How weights lie, in words and as what makes them so."""
        depthwise, (rows, columns) = self.is_depthwise(op), self.taps(op)
        layout = f"{op.opname} {'depthwise' if depthwise else 'dense'} {op.group} {rows * columns}"
        if depthwise:
            return layout, lambda w: self.oriented(op, w)
        return layout, lambda w: self.pack(self.oriented(op, w))

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def evaluate(self, op: Convolution, *arrays: Array) -> Array:
        x, weight, *bias = arrays
        if winograd.suits(self.chip, op):
            return winograd_arithmetic.evaluate(self, op, x, weight, bias[0] if bias else None)
        if winograd_cells.axis_of(self, op) is not None:
            return winograd_cells.evaluate(self, op, x, weight, bias[0] if bias else None)
        x, window, kernels = self.oriented_input(op, x), self.window(op), self.oriented(op, weight)
        biases = np.split(bias[0], op.group) if bias else [None] * op.group
        if self.is_depthwise(op):
            flat = kernels.reshape(kernels.shape[0], -1)
            sums = self.depthwise_sums(op, window, x, flat, bias[0] if bias else None)
        else:
            groups = zip(np.split(x, op.group, 1), np.split(kernels, op.group), biases)
            parts = [self.sums(op, window, part, kernel, own) for part, kernel, own in groups]
            sums = np.concatenate(parts, 1) if op.group > 1 else parts[0]
        return activate(self.machine.arithmetic_of(op.result.dtype), op.activation, sums)
