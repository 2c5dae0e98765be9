"""Functions of one element: activations, factors and shifts per channel (dv.md 1.3, 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.dv.arithmetic.run_model import RunWeights
from bmcompiler.backends.dv.arithmetic.stages import pattern, to_half
from bmcompiler.backends.dv.driver.commands import Run
from bmcompiler.backends.dv.driver.structs import HALF_ONE, Activation, ConvEnable, Pool
from bmcompiler.backends.dv.formats.packing_sizes import conv_size
from bmcompiler.backends.dv.formats.palette import is_palette
from bmcompiler.backends.dv.kernels.base import RunKernel, half_weights
from bmcompiler.backends.dv.kernels.maps import rises
from bmcompiler.backends.dv.lowering.build import extent_of
from bmcompiler.backends.dv.lowering.parts import Filters, Part
from bmcompiler.codegen.kernels import is_constant
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array, Halves
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Abs, Clip, Elu, LeakyRelu, Neg, Prelu, Relu, Sigmoid, Tanh
from bmcompiler.ops.layers.norm import Scale
from bmcompiler.target import OpT, rule

_CODES: dict[type[TensorOp], Activation] = {
    Relu: Activation.LEAKY_RELU,
    Clip: Activation.LEAKY_RELU,
    Elu: Activation.ELU,
    Sigmoid: Activation.SIGMOID,
    Tanh: Activation.TANH,
}


class PointwiseKernel(RunKernel[OpT]):
    """An op whose result has the shape of its operand; one that is no map of 4 dimensions is a vector per sample."""

    @rule("Operands must have 2 dimensions or more")
    def has_maps(self, op: OpT) -> bool:
        return all(len(value.shape) >= 2 for value in (*self.maps(op), *op.results))


class ActivationKernel(PointwiseKernel[TensorOp]):
    """relu, clip, leaky_relu, elu, sigmoid, tanh, abs: the last stage of a run."""

    ops = (Relu, Clip, LeakyRelu, Elu, Sigmoid, Tanh, Abs)

    def parts(self, op: TensorOp) -> Sequence[Part]:
        return (Part(_with(Run(m=extent_of(op.results[0]).c), op)),)

    def joined(self, op: TensorOp, part: Part, through: Value) -> Part | None:
        """|x| may follow another activation. What falls somewhere must not follow max pooling, see dv.md 9."""
        run = _with(part.run, op)
        if isinstance(op, Abs) and part.run.actfunc:
            run = replace(part.run, rectifi_en=1)
        elif part.run.actfunc:
            return None
        if run.has_lrn or part.run.rectifi_en or (run.pool_enable == Pool.MAX and not rises(run)):
            return None
        return replace(part, run=run)

    def keeps_bits(self, op: TensorOp) -> bool:
        """Bounds of clip are fp16 numbers."""
        return isinstance(op, (Relu, Clip, Abs))

    @rule("Bounds must be 0 and 6 (relu6), or 0 and infinity")
    def has_known_bounds(self, op: TensorOp) -> bool:
        return not isinstance(op, Clip) or (op.min == 0 and op.max in (6, float("inf")))

    @rule("The slope must be within fp16", "slope")
    def has_slope(self, op: TensorOp) -> bool:
        return not isinstance(op, LeakyRelu) or bool(np.isfinite(to_half(np.float64(op.slope))))

    @rule("alpha must be 1", "alpha")
    def has_alpha(self, op: TensorOp) -> bool:
        return not isinstance(op, Elu) or op.alpha == 1


class NegKernel(PointwiseKernel[Neg]):
    """neg: an average pooling of single elements times -1."""

    ops = (Neg,)

    def parts(self, op: Neg) -> Sequence[Part]:
        run = Run(m=extent_of(op.results[0]).c, pool_enable=Pool.AVERAGE, pool_avg_param=pattern(-1))
        return (Part(run),)


class ScaleKernel(PointwiseKernel[Scale]):
    """scale: a depthwise convolution with 1x1 kernels."""

    ops = (Scale,)

    def parts(self, op: Scale) -> Sequence[Part]:
        def halves(weight: Array, *bias: Array) -> RunWeights:
            return _channels(op, weight, *bias)

        return (_per_channel(op, "scale", halves, tuple(op.operands[1:])),)

    @rule("Factors and shifts must be constants")
    def has_constants(self, op: Scale) -> bool:
        return all(is_constant(value) for value in op.operands[1:])

    @rule("Factors must belong to channels, axis 1", "axis")
    def is_per_channel(self, op: Scale) -> bool:
        return op.axis % len(op.input.shape) == 1


class PreluKernel(PointwiseKernel[Prelu]):
    """prelu: an activation of convolutions; alone it follows a depthwise one that changes nothing."""

    ops = (Prelu,)

    def parts(self, op: Prelu) -> Sequence[Part]:
        def halves(slope: Array) -> RunWeights:
            return _channels(op, np.float32(1))._replace(prelu=self.slopes(op, slope))

        part = _per_channel(op, "prelu", halves, (op.operands[1],))
        return (replace(part, run=replace(part.run, actfunc=Activation.PRELU)),)

    def joined(self, op: Prelu, part: Part, through: Value) -> Part | None:
        """Slopes join the weights of a convolution, not of a dilated one. After max pooling see dv.md 9."""
        run, filters = part.run, part.filters
        busy = run.actfunc or run.rectifi_en or run.pool_enable == Pool.MAX
        if filters is None or busy or run.is_dilated or _is_smaller_apart(run, filters):
            return None
        count = len(filters.values)

        def halves(*arrays: Array) -> RunWeights:
            return filters.halves(*arrays[:count])._replace(prelu=self.slopes(op, arrays[count]))

        values = (*filters.values, op.operands[1])
        made = Filters(values, halves, f"{filters.layout}, prelu of {_repeats(op)}")
        return replace(part, run=replace(run, actfunc=Activation.PRELU), filters=made)

    def slopes(self, op: Prelu, slope: Array) -> Halves:
        """One per output channel of the run."""
        return _spread(op, half_weights(slope))

    @rule("Slopes must be constants")
    def has_constants(self, op: Prelu) -> bool:
        return is_constant(op.operands[1])

    @rule("Slopes must belong to channels, axis 1", "axis")
    def is_per_channel(self, op: Prelu) -> bool:
        return op.axis % len(op.input.shape) == 1


def _is_smaller_apart(run: Run, filters: Filters) -> bool:
    """Whether weights made to be bytes, which exclude slopes, and slopes in a run of their own are less together."""
    if not filters.values or not is_palette(filters.values[0]):
        return False
    weight = filters.values[0]
    kx, ky = run.kernel
    channels = weight.type.size // (run.m * kx * ky)
    apart = conv_size(channels, kx, ky, run.m, True) + conv_size(1, 1, 1, run.m, False, True)
    return apart < conv_size(channels, kx, ky, run.m, False, True)


def _per_channel(op: TensorOp, layout: str, halves: Any, values: tuple[Value, ...] = ()) -> Part:
    """A depthwise convolution with 1x1 kernels."""
    channels = extent_of(op.results[0]).c
    run = Run(m=channels, conv_enable=ConvEnable.CONV | ConvEnable.DEPTHWISE)
    return Part(run, Filters(values, halves, f"{layout} of {channels}, each {_repeats(op)}"))


def _channels(op: TensorOp, weight: Array, bias: Array | None = None) -> RunWeights:
    """Factors and shifts as the weights of a depthwise convolution."""
    shift = half_weights(np.asarray(0 if bias is None else bias, np.float32))
    return RunWeights(_spread(op, half_weights(np.asarray(weight))).reshape(-1, 1, 1, 1), _spread(op, shift))


def _repeats(op: TensorOp) -> int:
    """Elements of a vector that belong to one channel of the op's result."""
    shape = op.results[0].shape
    return 1 if len(shape) == 4 else prod(shape[2:])


def _spread(op: TensorOp, values: Halves) -> Halves:
    """A number for all channels, or one for each, as one for each channel of the run."""
    channels = op.results[0].shape[1]
    return np.repeat(np.broadcast_to(values.reshape(-1), (channels,)), _repeats(op))


def _with(run: Run, op: TensorOp) -> Run:
    """The run with an activation. |x| alone needs one, too: a leaky ReLU with slope 1 changes nothing."""
    if isinstance(op, LeakyRelu):
        return replace(run, actfunc=Activation.LEAKY_RELU, actfunc_param=pattern(op.slope))
    if isinstance(op, Abs):
        return replace(run, actfunc=Activation.LEAKY_RELU, actfunc_param=HALF_ONE, rectifi_en=1)
    if isinstance(op, Clip) and op.max == 6:
        return replace(run, actfunc=Activation.RELU6)
    return replace(run, actfunc=_CODES[type(op)])
