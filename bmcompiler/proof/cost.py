"""What a proof is expected to take, so that a compilation can decide whether it is worth it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bmcompiler.ir import Module
from bmcompiler.ops.base import TensorOp
from bmcompiler.options import Check
from bmcompiler.spelling import spelled
from bmcompiler.target import Target

SHARE, SHORT, INT8_SHORT = 0.2, 2.0, 10.0
"""A proof is made where it takes less than this share of the compilation, or so many seconds, in int8 or else."""

_MAC = {"integer": 0.06e-9, "f32": 0.35e-9, "f16": 1.0e-9, "bf16": 0.6e-9, "exact": 0.2e-9}
_SAMPLED_MAC = 0.12e-9
_ELEMENT = {"integer": 12e-9, "f32": 30e-9, "f16": 25e-9, "bf16": 25e-9, "exact": 22e-9}
_OP, _COMMAND = 0.5e-3, 0.14e-3
"""Seconds for both executions together, per multiply-accumulate, element of a result, op and command.

Measured on one core of an AMD EPYC, simulator plus `evaluate`, on MobileNetV2, SqueezeNet, ResNet-50, U-Net and a
small ViT, on all chips in all precisions: 0.4 to 0.9 of what is expected in floats (on a busy machine up to 3), 0.2
to 0.7 in int8; up to 3 for BERT, whose functions take many float operations for each element.
Floats cost more than integers, as they are added in the chip's order, and some results of 16 bits depend on it; "exact"
are those of a chip that rounds exact sums.
"""


def expected_seconds(modules: Iterable[Module], commands: int, target: Target, sampled: bool = False) -> float:
    """What both executions of one sample of every program are expected to take on this host; see `sampled_sums`."""
    ops = [op for module in modules for op in module.main.ops if isinstance(op, TensorOp)]
    return sum(_op_seconds(op, target, sampled) for op in ops) + commands * _COMMAND


def _op_seconds(op: TensorOp, target: Target, sampled: bool) -> float:
    kind = _kind(op, target)
    elements = sum(result.type.size for result in op.results)
    quick = sampled and (kind in ("f16", "bf16") or (kind == "f32" and op.short_name in _CONVOLUTIONS))
    return op.products() * (_SAMPLED_MAC if quick else _MAC[kind]) + elements * _ELEMENT[kind] + _OP


_CONVOLUTIONS = ("conv", "deconv")


def _kind(op: TensorOp, target: Target) -> str:
    types = [value.type for value in (*op.operands[:1], *op.results)]  # integer layers have tables of floats, too
    floats = {type.dtype for type in types if type.is_float}
    if not floats:
        return "integer"
    if target.exact_sums:
        return "exact"
    return next((kind for kind in ("f16", "bf16") if kind in floats), "f32")


def is_integer(modules: Sequence[Module]) -> bool:
    """Whether nets compute in quantized integers."""
    return any(r.type.quant is not None and r.type.is_integer for m in modules for op in m.main.ops for r in op.results)


def way_of(check: Check, modules: Sequence[Module], commands: int, spent: float, target: Target) -> tuple[bool, str]:
    """Whether float sums are sampled in the proof, and why none is made, "" where one is.

    Args:
        commands: of all programs. spent: seconds of the compilation so far.
    """
    if check == "never":
        return False, spelled("check", "never")
    if check != "auto":
        return False, ""
    expected, limit = expected_seconds(modules, commands, target), max(SHARE * spent, SHORT)
    if expected <= limit or (expected <= INT8_SHORT and is_integer(modules)):
        return False, ""
    if expected_seconds(modules, commands, target, sampled=True) <= limit:
        return True, ""
    return False, f"would take about {expected:,.0f} s; {spelled('check', 'always')} does it"
