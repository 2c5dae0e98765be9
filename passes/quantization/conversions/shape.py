"""Ops that move or select values: the same op on integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.pool import MaxPool
from bmcompiler.ops.places.shape import Concat, Moving, Pad
from bmcompiler.passes.quantization.base import COMMON, Scaling
from bmcompiler.passes.quantization.forms import Forms
from bmcompiler.passes.rewriting import declared


@COMMON.converts(Moving, MaxPool, scaling=Scaling.KEEPS)
def same_op(op: TensorOp, low: Forms[Any]) -> list[Value]:
    x = low.request(op.operands[0])
    return low.emit_all(op.opname, [x], declared(op), low.format_of(x))


@COMMON.converts(Pad, scaling=Scaling.KEEPS)
def pad(op: Pad, low: Forms[Any]) -> Value:
    """NaN stands for padding that counts nowhere, which integers have too."""
    x = low.request(op.x)
    have, attributes = low.format_of(x), declared(op)
    if not math.isnan(op.value):
        attributes["value"] = float(low.integers(np.full(1, op.value), have)[0])
    return low.emit("pad", [x], attributes, have)


@COMMON.converts(Concat, scaling=Scaling.JOINS)
def concat(op: Concat, low: Forms[Any]) -> Value:
    common = low.wanted(op.result)
    return low.emit("concat", [low.request(value, common) for value in op.operands], declared(op), common)
