"""Convolution and transposed convolution of bytes with a factor for each output channel (bm1684x-cube.md 5.1, 6, 9)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Precision
from bmcompiler.backends.bm1684x.instructions.window import Sums, integer_sums
from bmcompiler.backends.bm1684x.kernels.channel_end import KINDS, Block, emit_end, emit_factors, end_cycles, fits_sums
from bmcompiler.backends.bm1684x.timing_profile import GROUP
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.kernels.windows.conv_geometry import ConvGeometry, DeconvGeometry, runs_of
from bmcompiler.backends.lanes.kernels.windows.fold_rows import fold_inside
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.chip import align_up
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box, TileWork
from bmcompiler.numeric.arrays import Array
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.ops.layers.nn import Conv, Convolution, Deconv
from bmcompiler.target import Kernel, rule

_GROUP = GROUP[Precision.INT8]


class IntConvKernel(ConvGeometry):
    """conv of i8 and u8 in the mode channel: a command for sums, one or two for bias and factor."""

    ops: tuple[type[Convolution], ...] = (Conv,)

    @rule('Integers must be in the mode "channel"', got="mode")
    def known_mode(self, op: Convolution) -> bool:
        return op.mode == CHANNEL

    @rule("Weights, bias and factors must be constants, with factors for each output channel")
    def constant_factors(self, op: Convolution) -> bool:
        return (
            self.constant_weights(op)
            and op.factors is not None
            and len(op.factors.shape) == 2
            and (op.factors.shape[0] == op.type.shape[1])
        )

    @rule("Factors must be f32 beside a bias of f32, else i32")
    def known_factors(self, op: Convolution) -> bool:
        real = op.bias is not None and op.bias.type.is_float
        return op.factors is None or op.factors.dtype == ("f32" if real else "i32")

    @rule("The zero point of weights must be 0", got="zero_points")
    def symmetric_weights(self, op: Convolution) -> bool:
        return not op.zero_points or op.zero_points[1] == 0

    @rule("The sums must fit 32 bits: fewer input channels, or a smaller window")
    def exact_sums(self, op: Convolution) -> bool:
        return fits_sums(op, self.depth(op) * prod(self.taps(op)))

    def border(self, op: Convolution) -> int:
        return op.zero_points[0] & 0xFF if op.zero_points else 0

    def evaluate(self, op: Convolution, *arrays: Array) -> Array:
        """The op itself: sums are exact and rounding is the op's."""
        return Kernel.evaluate(self, op, *arrays)

    @rule("Narrow sums need a bias of f32 or, if the convolution is depthwise, i16")
    def narrow_sums(self, op: Convolution) -> bool:
        return not op.narrow or self.ends_at_once(op)

    def adds_bias(self, op: Convolution) -> bool:
        """Whether the command that sums adds the bias, too."""
        return self.is_depthwise(op) and op.bias is not None and op.bias.dtype == "i16"

    def ends_at_once(self, op: Convolution) -> bool:
        """Whether one command makes the result from the sums."""
        return self.adds_bias(op) or (op.bias is not None and op.bias.type.is_float)

    def whole_work(self, op: Convolution, box: Box) -> TileWork:
        """Rows of windows become channels inside local memory, where the input lies as it is."""
        return fold_inside(self, op, box, self.work(op, box))

    def work(self, op: Convolution, box: Box) -> TileWork:
        dims, (c0, c1) = extents(box), box[1]
        slide = self.slide(op, box, self.channels(op, c0, c1))
        single, at_once, item = self.is_depthwise(op), self.ends_at_once(op), 2 if op.narrow else 4
        block = self.block(op, (c0, c1))
        inputs = (
            self.input_buffer(op, [slide], "nchw" if op.group > 1 else "nhw"),
            block.buffer(partial(self.packed, op), self.over_depth(op), self.layout(op)),
        )
        narrow = op.rshift if op.narrow else None

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            source, place = ins
            reads = [buffer.read(place) for place, buffer in zip(ins, inputs)]
            bias = place + block.bias if block.biased else None
            sums = Sums((KINDS[op.input.dtype][1], KINDS[op.weight.dtype][1]), self.border(op), bias, narrow)
            kernel = place + block.weights, 0 if single else self.depth(op)
            command = integer_sums(Words(scratch[0], dims, item=item), source, kernel, slide.geometry, sums)
            build.issue(command, reads, [self.chip.plane(scratch[0], dims, item)])
            if block.spread_bytes:
                block.spread(build, place, scratch[1])
            end = emit_factors if at_once else emit_end
            end(op, build, dims, scratch[0], scratch[1] if block.spread_bytes else place + block.first, outs[0])

        spread = block.spread_cycles(self.machine.cycles) if block.spread_bytes else 0
        return TileWork(
            inputs,
            (self.machine.activation_out(op.result, dims4(op.result), box),),
            (self.chip.aligned_bytes(dims, item), *([block.spread_bytes] if block.spread_bytes else ())),
            compute,
            self.sum_cycles(op, dims, slide, item if single else 1)
            + end_cycles(op, self.machine.cycles, dims, at_once)
            + spread,
            self.apart(op, dims, 1),
        )

    def over_depth(self, op: Convolution) -> Callable[[np.ndarray], np.ndarray]:
        """What sums the weights behind each output channel."""
        return lambda w: w.sum((1, 2, 3))

    def block(self, op: Convolution, channels: tuple[int, int]) -> Block:
        """The coefficients of some output channels."""
        single, taps = self.is_depthwise(op), prod(self.taps(op))
        if single:
            return Block(self.machine, op, channels, taps, self.adds_bias(op), False)
        row, runs = align_up(self.depth(op), _GROUP) * taps, runs_of(self.depth(op), taps, _GROUP)
        return Block(self.machine, op, channels, row, self.adds_bias(op), True, *runs)

    def packed(self, op: Convolution, weight: np.ndarray) -> np.ndarray:
        """Depthwise weights as they are, others in groups of input channels, each with all its taps."""
        oriented = self.oriented(op, weight)
        return oriented if self.is_depthwise(op) else in_groups(oriented, _GROUP)

    def layout(self, op: Convolution) -> str:
        """What `packed` depends on."""
        return f"{'depthwise' if self.is_depthwise(op) else 'dense'} bytes {op.group} {self.taps(op)}"


class IntDeconvKernel(DeconvGeometry, IntConvKernel):
    """deconv of i8 and u8: what is inserted and padded is the zero point of the input."""

    ops = (Deconv,)

    def over_depth(self, op: Convolution) -> Callable[[np.ndarray], np.ndarray]:
        assert isinstance(op, Deconv), "the kernel is of this op"
        return op.over_depth


def in_groups(weight: np.ndarray, size: int) -> np.ndarray:
    """(O, I, KH, KW) -> (O, groups of `size` input channels, KH * KW, size), zeros where a group is not full."""
    o, i, kh, kw = weight.shape
    groups = -(-i // size)
    padded = np.zeros((o, groups * size, kh * kw), weight.dtype)
    padded[:, :i] = weight.reshape(o, i, kh * kw)
    return np.ascontiguousarray(padded.reshape(o, groups, size, kh * kw).swapaxes(2, 3))
