"""Transposed convolutions: a convolution of the map with zeros between its elements (dv.md 1.6)."""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.backends.dv.arithmetic.run_model import RunWeights
from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.commands import Pads, Pair, Run
from bmcompiler.backends.dv.driver.structs import ConvEnable
from bmcompiler.backends.dv.kernels.base import ACTIVATIONS, RunKernel
from bmcompiler.backends.dv.kernels.filters import filters_of
from bmcompiler.backends.dv.lowering.parts import Filters, Part
from bmcompiler.codegen.kernels import is_constant
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.nn import Deconv
from bmcompiler.target import rule


class DeconvKernel(RunKernel[Deconv]):
    """deconv: plain or depthwise, with its bias and activation.

    The device pads the widened map by what the kernel reaches beyond it, less the pads of the op; its kernels are
    turned by 180 degrees and lie in the order of outputs.
    """

    ops = (Deconv,)

    def parts(self, op: Deconv) -> Sequence[Part]:
        ky, kx = op.weight.shape[2:]
        top, bottom, left, right = self.pads(op)
        enable = ConvEnable.CONV | ConvEnable.DECONV | (ConvEnable.DEPTHWISE if op.group > 1 else 0)
        run = Run(
            m=op.results[0].shape[1],
            conv_enable=enable,
            kernel=Pair(kx, ky),
            conv_pad=Pads(left, right, top, bottom),
            conv_stride=Pair(op.strides[1], op.strides[0]),
            dilation=Pair(op.dilations[1], op.dilations[0]),
            actfunc=ACTIVATIONS[op.activation],
        )

        def halves(weight: Array, *bias: Array) -> RunWeights:
            by_output = weight if op.group > 1 else weight.swapaxes(0, 1)
            return filters_of(by_output[:, :, ::-1, ::-1], *bias)

        return (Part(run, Filters(tuple(op.operands[1:]), halves, f"deconv, {op.group} groups")),)

    def pads(self, op: Deconv) -> tuple[int, int, int, int]:
        """Top, bottom, left, right of the widened map."""
        found: list[int] = []
        for axis in (0, 1):
            reach = (op.weight.shape[2 + axis] - 1) * op.dilations[axis]
            before, after = op.pads[2 * axis : 2 * axis + 2]
            found += [reach - before, reach - after + op.output_pads[axis]]
        top, bottom, left, right = found
        return top, bottom, left, right

    @rule("Weights and bias must be constants")
    def has_constant_weights(self, op: Deconv) -> bool:
        return all(is_constant(value) for value in op.operands[1:])

    @rule("Groups must be single channels with one kernel each (depthwise), or there must be one group", "group")
    def is_plain_or_depthwise(self, op: Deconv) -> bool:
        return op.group == 1 or (op.group == op.input.shape[1] and op.weight.shape[1] == 1)

    @rule(f"Kernels have at most {CHIP.max_kernel_size} rows and columns")
    def has_small_kernel(self, op: Deconv) -> bool:
        """The driver does not ask this of transposed convolutions; the packers and the kernel module do."""
        return max(op.weight.shape[2:]) <= CHIP.max_kernel_size

    @rule("Pads must not be larger than what the kernel reaches beyond an element")
    def has_pads_within_reach(self, op: Deconv) -> bool:
        return min(self.pads(op)) >= 0
