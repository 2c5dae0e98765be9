"""Ops that are one run of a CONV command: convolution, poolings, element-wise addition.

Windows of poolings beyond what a run takes, as poolings of poolings (dv.md 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from math import ceil, log2, prod
from typing import NamedTuple, TypeVar

import numpy as np

from bmcompiler.backends.dv.arithmetic.run_model import RunWeights
from bmcompiler.backends.dv.arithmetic.stages import pattern
from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.commands import Pads, Pair, Run
from bmcompiler.backends.dv.driver.geometry import effective_kernel
from bmcompiler.backends.dv.driver.structs import HALF_ONE, Activation, ConvEnable, Pool
from bmcompiler.backends.dv.kernels.base import ACTIVATIONS, RunKernel, why_not
from bmcompiler.backends.dv.kernels.filters import across_groups, filters_of, with_gaps
from bmcompiler.backends.dv.lowering.build import extent_of
from bmcompiler.backends.dv.lowering.parts import Filters, Part
from bmcompiler.codegen.kernels import is_constant
from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.elements.elementwise import Add
from bmcompiler.ops.layers import pool as ops_pool
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.ops.layers.pool import AvgPool, MaxPool
from bmcompiler.target import rule

_LARGEST = CHIP.max_kernel_size


class WindowStep(NamedTuple):
    """Elements of a window along one axis, which lie side by side, and how many zeros follow the last of the map."""

    window: int
    zeros: int


@cache
def steps_of(size: int, exact: bool = False) -> tuple[WindowStep, ...] | None:
    """Windows of at most 7 elements, one after the other, that reduce `size` elements to one; the fewest steps.

    Args:
        exact: without zeros, so that longer maps fall into windows of `size`. None where a prime factor is too large.
    """
    if size <= _LARGEST:
        return (WindowStep(size, 0),)
    found: list[tuple[WindowStep, ...]] = []
    for window in range(_LARGEST, 1, -1):
        rest = steps_of(-(-size // window), exact)
        if rest is not None and not (exact and size % window):
            found.append((WindowStep(window, -size % window), *rest))
    return min(found, key=lambda chain: (len(chain), sum(step.zeros for step in chain)), default=None)


_MOST = 12  # poolings in a row


class WindowChain(NamedTuple):
    """One max pooling along one axis: its elements and the padding before and after the map."""

    size: int
    before: int
    after: int


def max_steps(size: int, before: int, after: int, count: int) -> list[WindowChain] | None:
    """`count` windows of at most 3 elements, each with stride 1 but the last, that reach as far as one of `size`.

    None where so many windows of at least one element reach too far, or not far enough. A window never lies in padding
    as a whole, so that what padding cuts off is seen by its neighbour.
    """
    reach, windows = size - 1, []
    if not 0 <= reach <= 2 * count:
        return None
    for left in range(count, 0, -1):
        part = -(-reach // left)
        pads = min(before, part), min(after, part)
        windows.append(WindowChain(part + 1, *pads))
        reach, before, after = reach - part, before - pads[0], after - pads[1]
    return windows if not before and not after else None


def max_counts(down: int, across: int) -> int | None:
    """How many poolings in a row make a window of that size; None where the device has no such windows."""
    count = -(-(max(down, across) - 1) // 2)
    fits = across - 1 >= count  # a window has 2 columns at least (dv.md 1.7), and may have one row
    return count if fits and 1 <= count <= _MOST else None


RISING = (Activation.NONE, Activation.TANH, Activation.SIGMOID, Activation.ELU, Activation.RELU6)
"""Activations that never fall: the largest of their results is the result of the largest. ReLU, see `rises`."""


_MAX_WINDOW = 3  # rows and columns of max pooling, dv.md 4.1


def rises(run: Run) -> bool:
    """Whether the activation of a run may as well come after max pooling, where the device has it."""
    slope_rises = run.actfunc == Activation.LEAKY_RELU and not run.actfunc_param & 0x8000
    return (run.actfunc in RISING or slope_rises) and not run.rectifi_en


class ConvKernel(RunKernel[Conv]):
    """conv: plain, depthwise or dilated, with its bias and activation.

    Other groups are a plain convolution whose weights are 0 for channels of other groups. A dilation that the device
    does not take is written out, with zeros in the gaps of the kernel. Neither changes a sum.
    """

    ops = (Conv,)

    def parts(self, op: Conv) -> Sequence[Part]:
        part = self.part(op, (1, 1))
        fits = max(effective_kernel(part.run)) <= CHIP.max_kernel_size
        if part.run.is_dilated and fits and why_not(part, extent_of(op.input)):
            return (self.part(op, op.dilations),)
        return (part,)

    def part(self, op: Conv, written_out: tuple[int, int]) -> Part:
        """The run with all of the dilation, down and across, that is not written out."""
        depthwise, (down, across) = is_depthwise(op), written_out
        groups = 1 if depthwise else op.group
        top, bottom, left, right = op.pads
        m, _, ky, kx = op.weight.shape
        run = Run(
            m=m,
            conv_enable=ConvEnable.CONV | (ConvEnable.DEPTHWISE if depthwise else 0),
            kernel=Pair((kx - 1) * across + 1, (ky - 1) * down + 1),
            conv_pad=Pads(left, right, top, bottom),
            conv_stride=Pair(op.strides[1], op.strides[0]),
            dilation=Pair(op.dilations[1] // across, op.dilations[0] // down),
            actfunc=ACTIVATIONS[op.activation],
        )

        def halves(weight: Array, *bias: Array) -> RunWeights:
            return filters_of(with_gaps(across_groups(weight, groups), down, across), *bias)

        values = (op.weight,) if op.bias is None else (op.weight, op.bias)
        return Part(run, Filters(values, halves, f"conv, {groups} groups, gaps {down} x {across}"))

    @rule("Weights and bias must be constants")
    def has_constant_weights(self, op: Conv) -> bool:
        return all(is_constant(value) for value in op.operands[1:])

    @rule(f"Depthwise kernels have at most {CHIP.max_kernel_size} rows and columns")
    def has_small_kernel(self, op: Conv) -> bool:
        """The driver does not ask this of depthwise convolutions; the packers and the kernel module do."""
        return not is_depthwise(op) or max(op.weight.shape[2:]) <= CHIP.max_kernel_size


def is_depthwise(op: Conv) -> bool:
    """Whether each channel has one kernel of its own."""
    return 1 < op.group == op.input.shape[1] == op.weight.shape[0]


PoolT = TypeVar("PoolT", bound=ops_pool.Pool)


class PoolKernel(RunKernel[PoolT]):
    """Windows of both poolings. Where their number is rounded up, the padding after the map is longer."""

    kind: Pool

    def window(self, op: PoolT) -> Run:
        """The run without what only one of the poolings has."""
        assert isinstance(op, (MaxPool, AvgPool)), "the kernel is of these ops"
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


class MaxPoolKernel(PoolKernel[MaxPool]):
    """max_pool. In the run of a convolution it comes before the activation, which must not fall anywhere."""

    ops = (MaxPool,)
    kind = Pool.MAX

    def parts(self, op: MaxPool) -> Sequence[Part]:
        """A window above 3 x 3 is a window over windows (`large_windows`)."""
        window = self.window(op)
        size, pads = window.pool_size, window.pool_pad
        count = max_counts(size.y, size.x)
        if count is None or max(size) <= _MAX_WINDOW:
            return (Part(window),)
        down = max_steps(size.y, pads.top, pads.bottom, count)
        across = max_steps(size.x, pads.left, pads.right, count)
        if down is None or across is None:
            return (Part(window),)
        runs = [
            Run(
                m=window.m,
                pool_enable=self.kind,
                pool_size=Pair(x.size, y.size),
                pool_pad=Pads(x.before, x.after, y.before, y.after),
            )
            for y, x in zip(down, across)
        ]
        return (*map(Part, runs[:-1]), Part(replace(runs[-1], pool_stride=window.pool_stride)))

    def joined(self, op: MaxPool, part: Part, through: Value) -> Part | None:
        window, run = self.window(op), part.run
        full = all(pad < size for pad, size in zip(window.pool_pad, np.repeat(window.pool_size, 2)))
        if run.pool_enable or run.has_lrn or not full or not rises(run):
            return None
        pool = {name: getattr(window, name) for name in ("pool_enable", "pool_size", "pool_stride", "pool_pad")}
        return replace(part, run=replace(run, **pool))

    def keeps_bits(self, op: MaxPool) -> bool:
        """Rounding never changes which number is larger."""
        return True

    @rule("The window must not be dilated", "dilations")
    def is_dense(self, op: MaxPool) -> bool:
        return max(op.dilations) == 1


class AvgPoolKernel(PoolKernel[AvgPool]):
    """avg_pool: the sum of a window times the reciprocal of its size, an fp16 number.

    A window above 7 x 7 is a window over windows (`large_windows`), and only its last factor is no power of two.
    """

    ops = (AvgPool,)
    kind = Pool.AVERAGE

    def parts(self, op: AvgPool) -> Sequence[Part]:
        chain = self.chain(op)
        if chain is None or len(chain) == 1:
            return (Part(replace(self.window(op), pool_avg_param=pattern(1 / prod(op.kernel)))),)
        parts: list[Part] = []
        left = 1 / prod(op.kernel)
        for down, across in chain:
            last = len(parts) + 1 == len(chain)
            factor = left if last else 0.5 ** ceil(log2(down.window * across.window))
            left /= factor
            size = Pair(across.window, down.window)
            run = Run(m=extent_of(op.input).c, pool_enable=self.kind, pool_size=size, pool_stride=size)
            pads = Pads(0, across.zeros, 0, down.zeros)
            parts.append(Part(replace(run, pool_pad=pads, pool_avg_param=pattern(factor))))
        return parts

    def chain(self, op: AvgPool) -> list[tuple[WindowStep, WindowStep]] | None:
        """Steps down and across; None where a large window is neither the whole map nor one of many side by side."""
        if max(op.kernel) <= CHIP.max_kernel_size:
            return [(WindowStep(op.kernel[0], 0), WindowStep(op.kernel[1], 0))]
        found = []
        for axis in (0, 1):
            size, length = op.kernel[axis], op.input.shape[2 + axis]
            beside = op.strides[axis] == size and length % size == 0
            if any(op.pads) or not (size == length or beside):
                return None
            steps = steps_of(size, exact=size != length)
            if steps is None:
                return None
            found.append(steps)
        down, across = found
        return list(zip_longest(down, across, fillvalue=WindowStep(1, 0)))

    @rule("Every window must count all its positions")
    def has_full_windows(self, op: AvgPool) -> bool:
        return all((op.counts(axis) == op.kernel[axis]).all() for axis in (0, 1))


class AddKernel(RunKernel[Add]):
    """add of two maps of one shape, alone or as the end of the run that makes one of them.

    A run needs some function: where there is no activation it is a leaky ReLU with slope 1, which changes nothing.
    """

    ops = (Add,)

    def maps(self, op: Add) -> list[Value]:
        return list(op.operands)

    def parts(self, op: Add) -> Sequence[Part]:
        run = Run(m=extent_of(op.operands[0]).c, actfunc=Activation.LEAKY_RELU, actfunc_param=HALF_ONE)
        if op.activation:
            run = replace(run, actfunc=ACTIVATIONS[op.activation], actfunc_param=0)
        return (Part(run, addend=op.operands[1]),)

    def joined(self, op: Add, part: Part, through: Value) -> Part | None:
        run, (left, right) = part.run, op.operands
        computes = run.has_conv or run.pool_enable in (Pool.AVERAGE, Pool.UPSAMPLE)
        if part.addend is not None or not computes or run.pool_enable == Pool.MAX or run.actfunc or run.rectifi_en:
            return None
        other = right if through is left else left
        return Part(replace(run, actfunc=ACTIVATIONS[op.activation]), part.filters, other)

    @rule("Operands must have 2 dimensions or more")
    def has_maps(self, op: Add) -> bool:
        """What is no map of 4 dimensions is a vector per sample."""
        return all(len(value.shape) >= 2 for value in op.operands)

    @rule("Both operands must have the shape of the result")
    def adds_equal_shapes(self, op: Add) -> bool:
        return all(value.shape == op.results[0].shape for value in op.operands)
