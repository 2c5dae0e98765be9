"""What a proof is expected to take, so that a compilation can decide whether it is worth it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bmcompiler.ir import Module
from bmcompiler.ops.base import TensorOp
from bmcompiler.options import Check

SHARE, SHORT, INT8_SHORT = 0.2, 2.0, 10.0
"""A proof is made where it takes less than this share of the compilation, or so many seconds, in int8 or else."""

_MAC = {"integer": 0.06e-9, "f32": 0.35e-9, "half": 2.4e-9}
_ELEMENT = {"integer": 12e-9, "f32": 30e-9, "half": 50e-9}
_OP, _COMMAND = 0.5e-3, 0.14e-3
"""Seconds for both executions together, per multiply-accumulate, element of a result, op and command.

Measured on one core of an AMD EPYC, simulator plus `evaluate`, on MobileNetV2, SqueezeNet, ResNet-50, U-Net and a
small ViT, on all chips in all precisions: 0.4 to 0.9 of what is expected in floats (on a busy machine up to 1.8), 0.2
to 0.7 in int8; up to 3 for BERT, whose functions take many float operations for each element.
Floats cost more than integers, as they are added in the chip's order, and 16-bit ones are rounded on
the way.
"""


def expected_seconds(modules: Iterable[Module], commands: int) -> float:
    """What both executions of one sample of every program are expected to take on this host."""
    ops = [op for module in modules for op in module.main.ops if isinstance(op, TensorOp)]
    return sum(map(_op_seconds, ops)) + commands * _COMMAND


def _op_seconds(op: TensorOp) -> float:
    types = [value.type for value in (*op.operands[:1], *op.results)]  # integer layers have tables of floats, too
    kind = "integer"
    if any(type.is_float for type in types):
        kind = "half" if any(type.dtype in ("f16", "bf16") for type in types) else "f32"
    elements = sum(result.type.size for result in op.results)
    return op.macs() * _MAC[kind] + elements * _ELEMENT[kind] + _OP


def is_integer(modules: Sequence[Module]) -> bool:
    """Whether nets compute in quantized integers."""
    return any(r.type.quant is not None and r.type.is_integer for m in modules for op in m.main.ops for r in op.results)


def reason_against(check: Check, modules: Sequence[Module], commands: int, spent: float) -> str:
    """Why no proof is made, "" where it is. commands: of all programs; spent: seconds of the compilation so far."""
    if check == "never":
        return "--check never"
    if check != "auto":
        return ""
    expected = expected_seconds(modules, commands)
    if expected <= max(SHARE * spent, SHORT) or (expected <= INT8_SHORT and is_integer(modules)):
        return ""
    return f"would take about {expected:,.0f} s; --check always does it"
