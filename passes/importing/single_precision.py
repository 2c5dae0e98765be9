"""Half- and double-precision nets in f32, the one float type that calibration and the int8 rules work on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmcompiler.conditions import NO_LAYOUT, ONE_FLOAT, OTHER_FLOATS, SOURCE_TYPES, other_floats
from bmcompiler.ir import Module, TensorType
from bmcompiler.ir.keys import WIDE
from bmcompiler.ops.core import Weight
from bmcompiler.ops.elements.integer import Cast
from bmcompiler.passmanager import Pass, PassContext, PassResult


@dataclass(frozen=True)
class SinglePrecision(Pass):
    """Give every f16, bf16 and f64 tensor of the net the element type f32.

    1. Inputs, weights and results change their type; casts to such types become casts to f32.
    2. What a net of other inputs computes in f64, as exact sums of integers, is noted to be too wide for 16-bit floats.
    3. A net that looks at the bits of such floats (bit_cast) stays as it is.

    Results differ by the rounding that 16 bits would have added or f64 avoided.
    """

    name = "single-precision"
    requires = (SOURCE_TYPES, NO_LAYOUT)
    ensures = (ONE_FLOAT,)
    loses_bits = False

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        other = other_floats(module)
        if not other:
            return PassResult(False)
        exact = not any(value.dtype == "f64" for function in module.functions for value in function.arguments)
        for op in module.walk():
            if exact and not isinstance(op, Weight) and any(value.dtype == "f64" for value in op.results):
                op.attributes[WIDE] = True
            if isinstance(op, Cast) and op.attributes["dtype"] in OTHER_FLOATS:
                op.attributes["dtype"] = "f32"
            if isinstance(op, Weight) and op.results[0] in other:
                key = op.attributes["key"]
                module.weights[key] = np.asarray(module.weights[key]).astype(np.float32)
        for value in other:
            value.type = TensorType(value.shape, "f32", value.type.quant)
        ctx.log(f"{len(other)} tensors of half or double precision are computed as f32")
        return PassResult(True)
