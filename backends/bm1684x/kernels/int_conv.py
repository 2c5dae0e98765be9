"""Convolution and transposed convolution of bytes with a factor for each output channel (bm1684x-cube.md 5.1, 6, 9)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.build import Build
from bmcompiler.backends.bm1684x.codes import Precision
from bmcompiler.backends.bm1684x.cycles import GROUP
from bmcompiler.backends.bm1684x.instructions.window import integer_sums
from bmcompiler.backends.bm1684x.kernels.channel_end import KINDS, constants_buffer, emit_end, end_cycles, fits_sums
from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.kernels.base import dims4
from bmcompiler.backends.lanes.kernels.channel_constants import channel_buffer
from bmcompiler.backends.lanes.kernels.conv_geometry import ConvGeometry, DeconvGeometry
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.codegen.build import extents
from bmcompiler.codegen.tiling import Box, Buffer, TileWork
from bmcompiler.numeric.factors import CHANNEL
from bmcompiler.ops.nn import Conv, Convolution, Deconv
from bmcompiler.target import Kernel, rule

_GROUP = GROUP[Precision.INT8]


class IntConvKernel(ConvGeometry):
    """conv of i8 and u8 in the mode channel: sums, bias and factor are a command each."""

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

    @rule("The zero point of weights must be 0", got="zero_points")
    def symmetric_weights(self, op: Convolution) -> bool:
        return not op.zero_points or op.zero_points[1] == 0

    @rule("The sums must fit 32 bits: fewer input channels, or a smaller window")
    def exact_sums(self, op: Convolution) -> bool:
        return fits_sums(op, self.depth(op) * prod(self.taps(op)))

    def border(self, op: Convolution) -> int:
        return op.zero_points[0] & 0xFF if op.zero_points else 0

    def evaluate(self, op: Convolution, *arrays: Any) -> Any:
        """The op itself: sums are exact and rounding is the op's."""
        return Kernel.evaluate(self, op, *arrays)

    def work(self, op: Convolution, box: Box) -> TileWork:
        dims, (c0, c1) = extents(box), box[1]
        slide = self.slide(op, box, self.channels(op, c0, c1))
        depth = 0 if self.is_depthwise(op) else self.depth(op)
        signs = KINDS[op.input.dtype][1], KINDS[op.weight.dtype][1]
        inputs = (
            self.input_buffer(op, [slide], "nchw" if op.group > 1 else "nhw"),
            self._weights(op, c0, c1),
            constants_buffer(self.chip, op, self.over_depth(op), (c0, c1)),
        )

        def compute(build: Build, ins: list[int], outs: list[int], scratch: list[int]) -> None:
            reads = [(place, place + buffer.lane_bytes) for place, buffer in zip(ins[:2], inputs)]
            sums = Words(scratch[0], dims)
            command = integer_sums(sums, ins[0], (ins[1], depth), slide.geometry, signs, self.border(op))
            build.issue(command, reads, [self.chip.plane(scratch[0], dims)])
            emit_end(op, build, dims, scratch[0], ins[2], outs[0])

        return TileWork(
            inputs,
            (self.machine.activation_out(op.result, dims4(op.result), box),),
            (self.chip.aligned_bytes(dims),),
            compute,
            self.sum_cycles(op, dims, slide, 1) + end_cycles(op, self.machine.cycles, dims),
            self.apart(op, dims, 1),
        )

    def over_depth(self, op: Convolution) -> Callable[[np.ndarray], np.ndarray]:
        """What sums the weights behind each output channel."""
        return lambda w: w.sum((1, 2, 3))

    def _weights(self, op: Convolution, c0: int, c1: int) -> Buffer:
        """Depthwise weights as they are, others in groups of input channels, each with all its taps."""
        taps = prod(self.taps(op))
        single = self.is_depthwise(op)
        dims = (1, taps) if single else (-(-self.depth(op) // _GROUP) * taps, _GROUP)

        def pack(build: LaneBuild) -> Callable[[np.ndarray], np.ndarray]:
            if single:
                return lambda w: self.oriented(op, w)
            return lambda w: in_groups(self.oriented(op, w), _GROUP)

        layout = f"{op.opname} {'depthwise' if single else 'dense'} bytes {op.group} {taps}"
        return channel_buffer(self.chip, op.weight, layout, pack, dims, 1, (c0, c1))


class IntDeconvKernel(DeconvGeometry, IntConvKernel):
    """deconv of i8 and u8: what is inserted and padded is the zero point of the input."""

    ops = (Deconv,)

    def over_depth(self, op: Convolution) -> Callable[[np.ndarray], np.ndarray]:
        assert isinstance(op, Deconv)
        return op.over_depth


def in_groups(weight: np.ndarray, size: int) -> np.ndarray:
    """(O, I, KH, KW) -> (O, groups of `size` input channels, KH * KW, size), zeros where a group is not full."""
    o, i, kh, kw = weight.shape
    groups = -(-i // size)
    padded = np.zeros((o, groups * size, kh * kw), weight.dtype)
    padded[:, :i] = weight.reshape(o, i, kh * kw)
    return np.ascontiguousarray(padded.reshape(o, groups, size, kh * kw).swapaxes(2, 3))
