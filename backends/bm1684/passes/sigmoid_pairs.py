"""A softmax over two numbers is a sigmoid of their difference, which the layer before it can compute."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS, SOURCE_TYPES
from bmcompiler.ir import Module, Rewriter, Value
from bmcompiler.ir.keys import LAYER_NAME, STATED, TENSOR_NAME
from bmcompiler.ops.elements.activation import Softmax
from bmcompiler.ops.layers.nn import Conv, Matmul
from bmcompiler.ops.places.shape import Reshape
from bmcompiler.passes.quantization.state import calibration_of
from bmcompiler.passes.rewriting import PatternPass, PatternTable, activates, make, on, rebuild, sole
from bmcompiler.passmanager import PassContext, PassResult


@dataclass(frozen=True)
class SigmoidPairs(PatternPass):
    """Sigmoids in place of softmaxes of two numbers, for nets that become integers: a sigmoid of bytes is a table.

    1. softmax of the two channels of a convolution or product with constant weights, which it alone reads, also through
       a reshape: sigmoid of the layer with the differences of its weights

    With a calibration table nothing is done: tables speak of the network as it is.
    """

    name = "sigmoid-pairs"
    requires = (SOURCE_TYPES, NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        if calibration_of(ctx).was_given(ctx.table) or any(
            STATED in function.attributes for function in module.functions
        ):
            return PassResult(False)
        return super().run(module, ctx)

    def table(self) -> PatternTable:
        return on(Softmax, self.difference)

    def difference(self, op: Softmax, rewriter: Rewriter) -> bool:
        """Rule 1."""
        import numpy as np

        reshape = sole(op.operands[0], Reshape)
        source = op.operands[0] if reshape is None else reshape.operands[0]
        layer = sole(source, Conv, Matmul)
        if layer is None or activates(layer) or not layer.type.is_float or layer.attributes.get("group", 1) != 1:
            return False
        axis, channel = op.axis % op.type.rank, 1 if isinstance(layer, Conv) else layer.type.rank - 1
        if _around(op.operands[0], axis) != _around(source, channel) or op.type.shape[axis] != 2:
            return False
        known = map(self.constant, layer.operands[1:])
        arrays = [array for array in known if array is not None]
        if len(arrays) + 1 < len(layer.operands) or (isinstance(layer, Matmul) and arrays[0].ndim != 2):
            return False
        along = (0 if isinstance(layer, Conv) or layer.transpose_right else 1, 0)
        constants = [
            self.weight(array - np.flip(array, at), old, layer, rewriter, "difference")
            for array, at, old in zip(arrays, along, layer.operands[1:])
        ]
        fresh = rebuild(layer, [layer.operands[0], *constants])
        made = [fresh] if reshape is None else [fresh, rebuild(reshape, [fresh.result])]
        for each in made:
            if name := each.attributes.pop(TENSOR_NAME, None):
                each.attributes[LAYER_NAME] = name
            rewriter.insert_before(op, each)
        rewriter.replace_with(op, make("sigmoid", made[-1].results, location=op.location))
        return True


def _around(value: Value, axis: int) -> tuple[int, int]:
    """Elements outside and inside of an axis."""
    return prod(value.shape[:axis]), prod(value.shape[axis + 1 :])
