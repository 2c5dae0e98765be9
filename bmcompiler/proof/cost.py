"""What a proof is expected to take, so that a compilation can decide whether it is worth it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bmcompiler.ir import Module
from bmcompiler.ops.base import TensorOp
from bmcompiler.options import Check

SHARE, SHORT, INT8_SHORT = 0.2, 2.0, 10.0
"""A proof is made where it takes less than this share of the compilation, or so many seconds, in int8 or else."""

_INTEGER_MAC, _FLOAT_MAC = 0.2e-9, 2.5e-9
_ELEMENT, _OP = 30e-9, 0.5e-3
"""Seconds on one core for both executions together: per multiply-accumulate, element of a result, and op."""


def expected_seconds(modules: Iterable[Module]) -> float:
    """What both executions of one sample of every program are expected to take on this host."""
    return sum(_op_seconds(op) for module in modules for op in module.main.ops if isinstance(op, TensorOp))


def _op_seconds(op: TensorOp) -> float:
    real = any(value.type.is_float for value in op.operands)
    elements = sum(result.type.size for result in op.results)
    return op.macs() * (_FLOAT_MAC if real else _INTEGER_MAC) + elements * _ELEMENT + _OP


def is_integer(modules: Sequence[Module]) -> bool:
    """Whether nets compute in quantized integers."""
    return any(r.type.quant is not None and r.type.is_integer for m in modules for op in m.main.ops for r in op.results)


def reason_against(check: Check, modules: Sequence[Module], spent: float) -> str:
    """Why no proof is made, "" where it is. spent: seconds that the compilation has taken so far."""
    if check == "never":
        return "--check never"
    if check != "auto":
        return ""
    expected = expected_seconds(modules)
    if expected <= max(SHARE * spent, SHORT) or (expected <= INT8_SHORT and is_integer(modules)):
        return ""
    return f"would take about {expected:,.0f} s; --check always does it"
