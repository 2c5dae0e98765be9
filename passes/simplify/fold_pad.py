"""Padding is said as such, and convolutions and poolings do what precedes them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS
from bmcompiler.ir import Rewriter, Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Conv
from bmcompiler.ops.layers.pool import AvgPool, MaxPool, Pool
from bmcompiler.ops.places.shape import Concat, Pad
from bmcompiler.passes.rewriting import PatternPass, PatternTable, make, on, producer, rebuild


@dataclass(frozen=True)
class FoldPad(PatternPass):
    """Fold a constant pad of height and width into its reader. Patterns act on every element type.

    1. conv(pad 0): conv with larger pads
    2. max_pool(pad with the lowest value of the type, or with 0 after an op that is never negative): max_pool with
       larger pads, as long as every window still sees an element (pads below the kernel, no dilation, no ceil_mode)
    3. avg_pool(pad 0) that has no pads or counts its own: avg_pool with larger pads that count; not with ceil_mode
    4. pad(pad) with one value: one pad
    5. concat(x and constants of one number): pad(x)
    """

    name = "fold-pad"
    requires = (NO_THRESHOLDS, NO_LAYOUT)
    loses_bits = False

    def table(self) -> PatternTable:
        pools = {**on(MaxPool, self.max_pool), **on(AvgPool, self.avg_pool)}
        return {**on(Conv, self.conv), **pools, **on(Pad, self.merge), **on(Concat, self.border)}

    def conv(self, op: Conv, rewriter: Rewriter) -> bool:
        """Rule 1."""
        pad = _spatial_pad(op.input)
        if pad is None or pad.value != 0:
            return False
        return _absorb(op, pad, {}, rewriter)

    def max_pool(self, op: MaxPool, rewriter: Rewriter) -> bool:
        """Rule 2."""
        pad = _spatial_pad(op.input)
        if pad is None or op.ceil_mode or op.dilations != (1, 1):
            return False
        harmless = pad.value == _lowest(pad.type.dtype) or (pad.value == 0 and _never_negative(pad.operands[0]))
        return harmless and _absorb(op, pad, {}, rewriter)

    def avg_pool(self, op: AvgPool, rewriter: Rewriter) -> bool:
        """Rule 3."""
        pad = _spatial_pad(op.input)
        if pad is None or pad.value != 0 or op.ceil_mode or (any(op.pads) and not op.count_include_pad):
            return False
        return _absorb(op, pad, {"count_include_pad": True}, rewriter)

    def merge(self, op: Pad, rewriter: Rewriter) -> bool:
        """Rule 4."""
        before = producer(op.operands[0], Pad)
        if before is None or (before.mode, op.mode) != ("constant", "constant") or before.value != op.value:
            return False
        pads = tuple(a + b for a, b in zip(before.pads, op.pads))
        merged = make("pad", before.operands, {"pads": pads, "value": op.value})
        merged.result.type = op.type
        rewriter.replace_with(op, merged, absorbed=[before])
        return True

    def border(self, op: Concat, rewriter: Rewriter) -> bool:
        """Rule 5."""
        inner = [index for index, value in enumerate(op.operands) if self.constant(value) is None]
        numbers = {self.uniform(value) for index, value in enumerate(op.operands) if index not in inner}
        number = numbers.pop() if len(numbers) == 1 else None
        if len(inner) != 1 or number is None:
            return False
        axis = op.axis % op.type.rank
        sizes = [value.shape[axis] for value in op.operands]
        pads = [0] * (2 * op.type.rank)
        pads[2 * axis : 2 * axis + 2] = sum(sizes[: inner[0]]), sum(sizes[inner[0] + 1 :])
        attributes = {"pads": tuple(pads), "value": number}
        rewriter.replace_with(op, make("pad", [op.operands[inner[0]]], attributes))
        return True


def _spatial_pad(value: Value) -> Pad | None:
    """The constant pad of axes 2 and 3 alone that makes `value`, keeping its type."""
    pad = producer(value, Pad)
    if pad is None or pad.mode != "constant" or pad.type.rank != 4 or any(pad.pads[:4]):
        return None
    return pad if pad.type.quant == pad.operands[0].type.quant else None


def _absorb(op: Conv | Pool, pad: Pad, changes: dict[str, object], rewriter: Rewriter) -> bool:
    pads = tuple(a + b for a, b in zip(op.pads, pad.pads[4:]))
    if isinstance(op, Pool):
        rows, columns = op.kernel
        if any(size >= kernel for size, kernel in zip(pads, (rows, rows, columns, columns))):
            return False
    fresh = rebuild(op, [pad.operands[0], *op.operands[1:]], pads=pads, **changes)
    rewriter.replace_with(op, fresh, absorbed=[pad])
    return True


def _lowest(dtype: str) -> float:
    bits = {"i8": 7, "i16": 15, "i32": 31, "i64": 63}.get(dtype)
    if bits is not None:
        return -float(1 << bits)
    return 0.0 if dtype.startswith("u") or dtype == "bool" else -math.inf


def _never_negative(value: Value) -> bool:
    """Whether `value` is at least 0 by the ops that make it, looking through ops that keep signs."""
    seen, todo = {value}, [value]
    while todo:
        value = todo.pop()
        op = value.op
        if value.dtype.startswith("u"):
            continue
        if not isinstance(op, TensorOp):
            return False
        if op.result_bounds()[0] >= 0:
            continue
        if not op.keeps_sign():
            return False
        todo += [v for v in op.operands if v not in seen]
        seen.update(op.operands)
    return True
