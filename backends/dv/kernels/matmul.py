"""Matrix products with constant weights: 1x1 convolutions of maps of one pixel, a sample per row of the left operand.

That is what the driver makes of FC commands where the device has no FC block (dv.md 1.5), one row at a time; a command
of its own takes all rows, reads their weights once, and goes on with what follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from bmcompiler.backends.dv.arithmetic.run_model import RunWeights
from bmcompiler.backends.dv.driver.commands import Run
from bmcompiler.backends.dv.driver.structs import MAX_INPUT_CHANNELS, ConvEnable
from bmcompiler.backends.dv.kernels.base import ACTIVATIONS, RunKernel
from bmcompiler.backends.dv.kernels.filters import filters_of
from bmcompiler.backends.dv.lowering.build import extent_of
from bmcompiler.backends.dv.lowering.parts import Filters, Part
from bmcompiler.codegen.kernels import is_constant
from bmcompiler.codegen.memory import root_of
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.target import rule


class MatmulKernel(RunKernel[Matmul]):
    """matmul of rows. A row may be a feature map seen flat: its weights are packed in the order of the map."""

    ops = (Matmul,)

    def parts(self, op: Matmul) -> Sequence[Part]:
        outputs = op.result.shape[1]

        def halves(right: Array, *bias: Array) -> RunWeights:
            table = right if op.transpose_right else right.T
            return filters_of(table[:, :, None, None], *bias)

        run = Run(m=outputs, conv_enable=ConvEnable.CONV, actfunc=ACTIVATIONS[op.activation])
        values = (op.right,) if op.bias is None else (op.right, op.bias)
        return (Part(run, Filters(values, halves, f"matmul, right transposed {op.transpose_right}")),)

    @rule("Operands must have 2 dimensions, the left one not transposed")
    def has_maps(self, op: Matmul) -> bool:
        return len(op.left.shape) == len(op.right.shape) == 2 and not op.transpose_left

    @rule("Weights and bias must be constants, the bias a value per output")
    def has_constant_weights(self, op: Matmul) -> bool:
        one_each = op.bias is None or op.bias.shape == (op.result.shape[-1],)
        return one_each and all(is_constant(value) for value in op.operands[1:])

    @rule(f"Rows and results have at most {MAX_INPUT_CHANNELS} elements")
    def fits_the_fields(self, op: Matmul) -> bool:
        return max(op.left.shape[-1], op.result.shape[-1]) <= MAX_INPUT_CHANNELS

    @rule('The activation must be none, "relu" or "relu6"', "activation")
    def has_activation(self, op: Matmul) -> bool:
        return op.activation in ACTIVATIONS

    @rule("Feature maps must be read in the shape they were computed in")
    def keeps_layouts(self, op: Matmul) -> bool:
        """Each row is a whole sample of what was computed, in any shape."""
        root = root_of(op.left)
        return root.op is None or (
            root.shape[:1] == op.left.shape[:1] and extent_of(root).elements == op.left.shape[-1]
        )
