"""Ops that are one run of a CONV command: convolution, poolings, element-wise addition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bmcompiler.backends.dv.build import DvBuild, extent_of
from bmcompiler.backends.dv.checks import limits
from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.commands import ConvCommand, Pads, Pair, Run
from bmcompiler.backends.dv.geometry import result
from bmcompiler.backends.dv.kernels.base import ACTIVATIONS, DvKernel, half_weights, patterns
from bmcompiler.backends.dv.packing import pack_conv, pack_dilated
from bmcompiler.backends.dv.run_model import RunWeights, run_result
from bmcompiler.backends.dv.stages import to_half
from bmcompiler.backends.dv.structs import (
    HALF_ONE,
    MAX_INPUT_CHANNELS,
    MAX_INPUT_HEIGHT,
    MAX_INPUT_WIDTH,
    Activation,
    ConvEnable,
    OutputMode,
    Pool,
)
from bmcompiler.codegen.kernels import is_constant
from bmcompiler.codegen.schedule import Moved
from bmcompiler.errors import EncodingError
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elementwise import Add
from bmcompiler.ops.nn import Conv
from bmcompiler.ops.pool import AvgPool, MaxPool
from bmcompiler.target import rule


class RunKernel(DvKernel):
    """An op that is one run; subclasses give the run and, where there are any, its weights."""

    def run(self, op: TensorOp) -> Run:
        """The run without its weight buffer."""
        raise TypeError(f"{type(self).__name__} has no run")

    def weights(self, op: TensorOp, *arrays: Any) -> RunWeights | None:
        """What the run multiplies by, of the op's operands."""
        return None

    def pack(self, op: TensorOp, build: DvBuild) -> int | None:
        """Offset of the packed weights among the coefficients."""
        return None

    def command(self, op: TensorOp) -> ConvCommand:
        """The command without its buffers."""
        w, h, _, c = extent_of(op.operands[0])
        mode = OutputMode.ADD if len(self.maps(op)) > 1 else OutputMode.CONCAT
        return ConvCommand(w, h, c, (self.run(op),), output_mode=mode)

    def refusal(self, op: TensorOp) -> str | None:
        command = self.command(op)
        try:
            command.encode()
        except EncodingError as error:
            return error.reason
        refused = limits(command, CHIP)
        if refused:
            return refused.text
        made = result(extent_of(op.operands[0]), command.runs[0])
        wanted = extent_of(op.results[0])
        return None if made == wanted else f"the device would make {made.w} x {made.h}, not {wanted.w} x {wanted.h}"

    def emit(self, op: TensorOp, build: DvBuild) -> Moved:
        command, weights = self.command(op), self.pack(op, build)
        if weights is not None:
            run = replace(command.runs[0], weight_buf=build.constants(weights))
            command = replace(command, runs=(run,))
        return build.conv(command, self.maps(op), op.results[0])

    def evaluate(self, op: TensorOp, *arrays: Any) -> Any:
        run, weights = self.run(op), self.weights(op, *arrays)
        maps = [to_half(array) for array in arrays[: len(self.maps(op))]]
        out = np.empty(op.results[0].shape, np.float32)
        for index in range(len(out)):
            x, *more = (array[index].transpose(2, 1, 0) for array in maps)
            out[index] = run_result(run, x, weights, *more).transpose(2, 1, 0)
        return out

    @rule("Feature maps must have 4 dimensions")
    def has_maps(self, op: TensorOp) -> bool:
        return all(len(value.shape) == 4 for value in (*self.maps(op), *op.results))

    @rule(f"Maps have at most {MAX_INPUT_WIDTH} columns, {MAX_INPUT_HEIGHT} rows and {MAX_INPUT_CHANNELS} channels")
    def fits_the_fields(self, op: TensorOp) -> bool:
        sizes = [extent_of(value) for value in (*self.maps(op), *op.results)]
        return all(e.w <= MAX_INPUT_WIDTH and e.h <= MAX_INPUT_HEIGHT and e.c <= MAX_INPUT_CHANNELS for e in sizes)


class ConvKernel(RunKernel):
    """conv: plain, depthwise or dilated, with its bias and activation."""

    ops = (Conv,)

    def run(self, op: TensorOp) -> Run:
        assert isinstance(op, Conv)
        top, bottom, left, right = op.pads
        m, _, ky, kx = op.weight.shape
        return Run(
            m=m,
            conv_enable=ConvEnable.CONV | (ConvEnable.DEPTHWISE if op.group > 1 else 0),
            kernel=Pair(kx, ky),
            conv_pad=Pads(left, right, top, bottom),
            conv_stride=Pair(op.strides[1], op.strides[0]),
            dilation=Pair(op.dilations[1], op.dilations[0]),
            actfunc=ACTIVATIONS[op.activation],
        )

    def weights(self, op: TensorOp, *arrays: Any) -> RunWeights:
        _, weight, *bias = arrays
        given = bias[0] if bias and bias[0] is not None else np.zeros(len(weight), np.float32)
        return RunWeights(half_weights(weight), half_weights(given))

    def pack(self, op: TensorOp, build: DvBuild) -> int:
        assert isinstance(op, Conv)
        packer = pack_dilated if max(op.dilations) > 1 else pack_conv

        def packed(weight: Any, *bias: Any) -> Any:
            given = bias[0] if bias else np.zeros(len(weight), np.float32)
            return packer(patterns(weight), patterns(given))

        more = [] if op.bias is None else [op.bias]
        return build.coefficients.place(op.weight, packer.__name__, packed, *more)

    @rule("Weights and bias must be constants")
    def has_constant_weights(self, op: TensorOp) -> bool:
        return all(is_constant(value) for value in op.operands[1:])

    @rule("Groups must be single channels with one kernel each (depthwise), or there must be one group", "group")
    def is_plain_or_depthwise(self, op: TensorOp) -> bool:
        assert isinstance(op, Conv)
        return op.group == 1 or op.group == op.input.shape[1] == op.weight.shape[0]


class PoolKernel(RunKernel):
    """Windows of both poolings. Where their number is rounded up, the padding after the map is longer."""

    kind: Pool

    def run(self, op: TensorOp) -> Run:
        assert isinstance(op, (MaxPool, AvgPool))
        top, _, left, _ = op.pads
        rows, columns = op.reach()
        source = extent_of(op.input)
        return Run(
            m=source.c,
            pool_enable=self.kind,
            pool_size=Pair(op.kernel[1], op.kernel[0]),
            pool_stride=Pair(op.strides[1], op.strides[0]),
            pool_pad=Pads(left, max(0, columns - left - source.w), top, max(0, rows - top - source.h)),
        )


class MaxPoolKernel(PoolKernel):
    """max_pool."""

    ops = (MaxPool,)
    kind = Pool.MAX

    @rule("The window must not be dilated", "dilations")
    def is_dense(self, op: TensorOp) -> bool:
        assert isinstance(op, MaxPool)
        return max(op.dilations) == 1


class AvgPoolKernel(PoolKernel):
    """avg_pool: the sum of a window times the reciprocal of its size, an fp16 number."""

    ops = (AvgPool,)
    kind = Pool.AVERAGE

    def run(self, op: TensorOp) -> Run:
        assert isinstance(op, AvgPool)
        factor = np.float16(1 / (op.kernel[0] * op.kernel[1]))
        return replace(super().run(op), pool_avg_param=int(factor.view(np.uint16)))

    @rule("Every window must count all its positions")
    def has_full_windows(self, op: TensorOp) -> bool:
        assert isinstance(op, AvgPool)
        return all((op.counts(axis) == op.kernel[axis]).all() for axis in (0, 1))


class AddKernel(RunKernel):
    """add of two maps of one shape: a run that does nothing but add and activate.

    A run needs some function: where there is no activation it is a leaky ReLU with slope 1, which changes nothing.
    """

    ops = (Add,)

    def maps(self, op: TensorOp) -> list[Value]:
        return list(op.operands)

    def run(self, op: TensorOp) -> Run:
        assert isinstance(op, Add)
        channels = extent_of(op.operands[0]).c
        if not op.activation:
            return Run(m=channels, actfunc=Activation.LEAKY_RELU, actfunc_param=HALF_ONE)
        return Run(m=channels, actfunc=ACTIVATIONS[op.activation])

    @rule("Both operands must have the shape of the result")
    def adds_equal_shapes(self, op: TensorOp) -> bool:
        return all(value.shape == op.results[0].shape for value in op.operands)
