"""Half- and double-precision nets in f32, the one float type that calibration and the int8 rules work on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmcompiler.ir import Module, Operation, TensorType, Value
from bmcompiler.ops.core import Weight
from bmcompiler.ops.functions import BitCast
from bmcompiler.ops.integer import Cast
from bmcompiler.passmanager import Pass, PassContext, PassResult

OTHER = ("f16", "f64")


@dataclass(frozen=True)
class SinglePrecision(Pass):
    """Give every f16 and f64 tensor of the net the element type f32.

    1. Inputs, weights and results change their type; casts to f16 or f64 become casts to f32.
    2. A net that looks at the bits of such floats (bit_cast) stays as it is.

    Results differ by the rounding that f16 would have added or f64 avoided.
    """

    name = "single-precision"

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        ops = list(module.walk())
        values = [*(a for f in module.functions for a in f.arguments), *(r for op in ops for r in op.results)]
        other = [value for value in values if value.dtype in OTHER]
        if not other or any(_reads_bits(op) for op in ops):
            return PassResult(False)
        for op in ops:
            if isinstance(op, Cast) and op.attributes["dtype"] in OTHER:
                op.attributes["dtype"] = "f32"
            if isinstance(op, Weight) and op.results[0] in other:
                key = op.attributes["key"]
                module.weights[key] = np.asarray(module.weights[key]).astype(np.float32)
        for value in other:
            value.type = TensorType(value.shape, "f32", value.type.quant)
        ctx.log(f"{len(other)} tensors of half or double precision are computed as f32")
        return PassResult(True)


def _reads_bits(op: Operation) -> bool:
    touched: list[Value] = [*op.operands, *op.results]
    return isinstance(op, BitCast) and any(value.dtype in OTHER for value in touched)
