"""Ops that are one run of a CONV command: convolution, poolings, element-wise addition, ReLU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bmcompiler.backends.dv.build import extent_of
from bmcompiler.backends.dv.commands import Pads, Pair, Run
from bmcompiler.backends.dv.kernels.base import ACTIVATIONS, RunKernel, half_weights
from bmcompiler.backends.dv.parts import Filters, Part
from bmcompiler.backends.dv.run_model import RunWeights
from bmcompiler.backends.dv.structs import HALF_ONE, Activation, ConvEnable, Pool
from bmcompiler.codegen.kernels import is_constant
from bmcompiler.ir import Value
from bmcompiler.ops.activation import Clip, Relu
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elementwise import Add
from bmcompiler.ops.nn import Conv
from bmcompiler.ops.pool import AvgPool, MaxPool
from bmcompiler.target import rule

RISING = (Activation.NONE, Activation.TANH, Activation.SIGMOID, Activation.ELU, Activation.RELU6)
"""Activations that never fall: the largest of their results is the result of the largest. ReLU, see `rises`."""


def rises(run: Run) -> bool:
    """Whether the activation of a run may as well come after max pooling, where the device has it."""
    slope_rises = run.actfunc == Activation.LEAKY_RELU and not run.actfunc_param & 0x8000
    return (run.actfunc in RISING or slope_rises) and not run.rectifi_en


class ConvKernel(RunKernel):
    """conv: plain, depthwise or dilated, with its bias and activation."""

    ops = (Conv,)

    def parts(self, op: TensorOp) -> Sequence[Part]:
        assert isinstance(op, Conv)
        top, bottom, left, right = op.pads
        m, _, ky, kx = op.weight.shape
        run = Run(
            m=m,
            conv_enable=ConvEnable.CONV | (ConvEnable.DEPTHWISE if op.group > 1 else 0),
            kernel=Pair(kx, ky),
            conv_pad=Pads(left, right, top, bottom),
            conv_stride=Pair(op.strides[1], op.strides[0]),
            dilation=Pair(op.dilations[1], op.dilations[0]),
            actfunc=ACTIVATIONS[op.activation],
        )
        values = (op.weight,) if op.bias is None else (op.weight, op.bias)
        return (Part(run, Filters(values, conv_weights, "conv")),)

    @rule("Weights and bias must be constants")
    def has_constant_weights(self, op: TensorOp) -> bool:
        return all(is_constant(value) for value in op.operands[1:])

    @rule("Groups must be single channels with one kernel each (depthwise), or there must be one group", "group")
    def is_plain_or_depthwise(self, op: TensorOp) -> bool:
        assert isinstance(op, Conv)
        return op.group == 1 or op.group == op.input.shape[1] == op.weight.shape[0]


def conv_weights(weight: Any, bias: Any = None) -> RunWeights:
    """Filters of a convolution as they stand; no bias is zeros."""
    given = np.zeros(len(weight), np.float32) if bias is None else bias
    return RunWeights(half_weights(weight), half_weights(given))


class PoolKernel(RunKernel):
    """Windows of both poolings. Where their number is rounded up, the padding after the map is longer."""

    kind: Pool

    def window(self, op: TensorOp) -> Run:
        """The run without what only one of the poolings has."""
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
    """max_pool. In the run of a convolution it comes before the activation, which must not fall anywhere."""

    ops = (MaxPool,)
    kind = Pool.MAX

    def parts(self, op: TensorOp) -> Sequence[Part]:
        return (Part(self.window(op)),)

    def joined(self, op: TensorOp, part: Part, through: Value) -> Part | None:
        window, run = self.window(op), part.run
        full = all(pad < size for pad, size in zip(window.pool_pad, np.repeat(window.pool_size, 2)))
        if run.pool_enable or run.has_lrn or not full or not rises(run):
            return None
        pool = {name: getattr(window, name) for name in ("pool_enable", "pool_size", "pool_stride", "pool_pad")}
        return replace(part, run=replace(run, **pool))

    def keeps_bits(self, op: TensorOp) -> bool:
        """Rounding never changes which number is larger."""
        return True

    @rule("The window must not be dilated", "dilations")
    def is_dense(self, op: TensorOp) -> bool:
        assert isinstance(op, MaxPool)
        return max(op.dilations) == 1


class AvgPoolKernel(PoolKernel):
    """avg_pool: the sum of a window times the reciprocal of its size, an fp16 number."""

    ops = (AvgPool,)
    kind = Pool.AVERAGE

    def parts(self, op: TensorOp) -> Sequence[Part]:
        assert isinstance(op, AvgPool)
        factor = np.float16(1 / (op.kernel[0] * op.kernel[1]))
        return (Part(replace(self.window(op), pool_avg_param=int(factor.view(np.uint16)))),)

    @rule("Every window must count all its positions")
    def has_full_windows(self, op: TensorOp) -> bool:
        assert isinstance(op, AvgPool)
        return all((op.counts(axis) == op.kernel[axis]).all() for axis in (0, 1))


class AddKernel(RunKernel):
    """add of two maps of one shape, alone or as the end of the run that makes one of them.

    A run needs some function: where there is no activation it is a leaky ReLU with slope 1, which changes nothing.
    """

    ops = (Add,)

    def maps(self, op: TensorOp) -> list[Value]:
        return list(op.operands)

    def parts(self, op: TensorOp) -> Sequence[Part]:
        assert isinstance(op, Add)
        run = Run(m=extent_of(op.operands[0]).c, actfunc=Activation.LEAKY_RELU, actfunc_param=HALF_ONE)
        if op.activation:
            run = replace(run, actfunc=ACTIVATIONS[op.activation], actfunc_param=0)
        return (Part(run, addend=op.operands[1]),)

    def joined(self, op: TensorOp, part: Part, through: Value) -> Part | None:
        assert isinstance(op, Add)
        run, (left, right) = part.run, op.operands
        computes = run.has_conv or run.pool_enable in (Pool.AVERAGE, Pool.UPSAMPLE)
        if part.addend is not None or not computes or run.pool_enable == Pool.MAX or run.actfunc or run.rectifi_en:
            return None
        other = right if through is left else left
        return Part(replace(run, actfunc=ACTIVATIONS[op.activation]), part.filters, other)

    @rule("Both operands must have the shape of the result")
    def adds_equal_shapes(self, op: TensorOp) -> bool:
        return all(value.shape == op.results[0].shape for value in op.operands)


class ReluKernel(RunKernel):
    """relu, and clip from 0 to 6."""

    ops = (Relu, Clip)

    def parts(self, op: TensorOp) -> Sequence[Part]:
        return (Part(Run(m=extent_of(op.operands[0]).c, actfunc=ACTIVATIONS[_name(op)])),)

    def joined(self, op: TensorOp, part: Part, through: Value) -> Part | None:
        run = part.run
        if run.actfunc or run.rectifi_en or run.has_lrn:
            return None
        return replace(part, run=replace(run, actfunc=ACTIVATIONS[_name(op)]))

    def keeps_bits(self, op: TensorOp) -> bool:
        """Both bounds are fp16 numbers."""
        return True

    @rule("Bounds must be 0 and 6 (relu6), or 0 and infinity")
    def has_known_bounds(self, op: TensorOp) -> bool:
        return not isinstance(op, Clip) or (op.min == 0 and op.max in (6, float("inf")))


def _name(op: TensorOp) -> str:
    return "relu6" if isinstance(op, Clip) and op.max == 6 else "relu"
