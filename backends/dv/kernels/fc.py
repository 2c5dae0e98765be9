"""Matrix products with constant weights: FC commands, one per row of the left operand."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.dv.arithmetic.accumulate import inner_product
from bmcompiler.backends.dv.arithmetic.stages import activate, to_half
from bmcompiler.backends.dv.chip import CHIP
from bmcompiler.backends.dv.driver.commands import FcCommand
from bmcompiler.backends.dv.driver.structs import Activation, FcActivation, FcFormat
from bmcompiler.backends.dv.formats.packing import pack_fc
from bmcompiler.backends.dv.formats.packing_sizes import fc_size
from bmcompiler.backends.dv.formats.palette import Coded, coded
from bmcompiler.backends.dv.kernels.base import DvKernel, half_weights, patterns
from bmcompiler.backends.dv.lowering.build import DvBuild, extent_of
from bmcompiler.backends.dv.lowering.parts import bits
from bmcompiler.codegen.kernels import is_constant
from bmcompiler.codegen.memory import root_of
from bmcompiler.codegen.schedule import Moved
from bmcompiler.numeric.arrays import Halves
from bmcompiler.ops.layers.nn import Matmul
from bmcompiler.target import rule

_ACTIVATIONS = {
    "": (FcActivation.NONE, Activation.NONE),
    "relu": (FcActivation.RELU, Activation.LEAKY_RELU),
}
"""As a command says it, and what it computes."""


class FcKernel(DvKernel[Matmul]):
    """matmul of rows. A row may be a feature map seen flat: its weights are packed in the order of the map."""

    ops = (Matmul,)

    def emit(self, op: Matmul, build: DvBuild) -> Moved:
        source = build.extent(op.left)
        outputs = op.result.shape[1]

        array = half_weights(build.coefficients.array(op.right))
        table = array if op.transpose_right else array.T
        found = self.coded(table)

        def packed(_: Any, *bias: Any) -> Any:
            given = patterns(bias[0] if bias else np.zeros(outputs, np.float32))
            sides = (source.c, source.h, source.w), (outputs, 1, 1)
            if found is None:
                return pack_fc(bits(table), given, *sides)
            return pack_fc(found.indices, given, *sides, found.table)

        more = [] if op.bias is None else [op.bias]
        layout = f"fc {source.c} {source.h} {source.w} {op.transpose_right} {found is None}"
        weights = build.coefficients.place(op.right, layout, packed, *more)
        function, _ = _ACTIVATIONS[op.activation]
        form = FcFormat.FLOAT16 if found is None else FcFormat.QUANTIZED
        command = FcCommand(source.elements, outputs, build.constants(weights), weight_fmt=form, actfunc=function)
        return build.fc(command, op.left, op.result)

    def coded(self, table: Halves) -> Coded | None:
        """The weights as bytes where that is possible and smaller; both formats give the same numbers."""
        outputs, inputs = table.shape
        return coded(table) if fc_size(inputs, outputs, True) < fc_size(inputs, outputs, False) else None

    def evaluate(self, op: Matmul, *arrays: Any) -> Any:
        left, right, *bias = arrays
        table = np.ascontiguousarray(half_weights(right if op.transpose_right else right.T))
        given = bias[0] if bias and bias[0] is not None else np.zeros(len(table), np.float32)
        _, function = _ACTIVATIONS[op.activation]
        rows = (inner_product(row, table, half_weights(given)) for row in to_half(left))
        return np.stack([to_half(activate(row, function)) for row in rows]).astype(np.float32)

    @rule("Operands must have 2 dimensions, the left one not transposed")
    def is_of_rows(self, op: Matmul) -> bool:
        return len(op.left.shape) == len(op.right.shape) == 2 and not op.transpose_left

    @rule("Weights and bias must be constants, the bias a value per output")
    def has_constant_weights(self, op: Matmul) -> bool:
        one_each = op.bias is None or op.bias.shape == (op.result.shape[-1],)
        return one_each and all(is_constant(value) for value in op.operands[1:])

    @rule(f"Rows and results have at most {CHIP.max_fc_vector_size} elements")
    def fits_the_block(self, op: Matmul) -> bool:
        return max(op.operands[0].shape[-1], op.results[0].shape[-1]) <= CHIP.max_fc_vector_size

    @rule('The activation must be none or "relu"', "activation")
    def has_activation(self, op: Matmul) -> bool:
        return op.activation in _ACTIVATIONS

    @rule("Feature maps must be read in the shape they were computed in")
    def keeps_layouts(self, op: Matmul) -> bool:
        """Each row is a whole sample of what was computed, in any shape."""
        left, root = op.operands[0], root_of(op.operands[0])
        return root.op is None or (root.shape[:1] == left.shape[:1] and extent_of(root).elements == left.shape[-1])
