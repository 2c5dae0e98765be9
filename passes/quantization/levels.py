"""Functions that level off: how far out their operands matter."""

from __future__ import annotations

from bmcompiler.ir import Operation

_BOTH = {"sigmoid": 8.0, "tanh": 4.5}
"""Beyond this magnitude the result is its bound, to less than half a step of 8 bits."""
_BELOW = {"hard_swish": 3.0, "gelu": 4.0, "softplus": 8.0, "mish": 8.0, "elu": 6.0}
"""Below minus this the result is constant to about as much; above 0 it grows as the operand does."""


def reach(op: Operation, result: float) -> float | None:
    """The largest magnitude of the operand that `op` tells from larger ones; None where all of them matter.

    Args:
        result: the threshold of its result.
    """
    name = op.short_name
    if name == "hard_sigmoid":
        alpha, beta = float(op.attributes.get("alpha", 0.2)), float(op.attributes.get("beta", 0.5))
        return max(abs(beta), abs(1 - beta)) / alpha if alpha > 0 else None
    if name in _BOTH:
        return _BOTH[name]
    if name == "swish":
        alpha = float(op.attributes.get("alpha", 1.0))
        return max(8.0 / alpha, result) if alpha > 0 else None
    return max(_BELOW[name], result) if name in _BELOW else None
