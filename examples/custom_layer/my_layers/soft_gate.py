"""ONNX op my.layers.SoftGate(x, gate), x * sigmoid(alpha * gate), with a float kernel for the BM1684."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.lanes.kernels.functions.elementwise import ElementwiseKernel
from bmcompiler.backends.lanes.recipes import Recorder, Register
from bmcompiler.backends.lanes.recipes.exponential import sigmoid
from bmcompiler.frontends.onnx.node import Node
from bmcompiler.frontends.onnx.registry import onnx_op
from bmcompiler.ir import TensorType, Value
from bmcompiler.ops.base import TensorOp, attr, operand, tensorop
from bmcompiler.ops.builder import Builder
from bmcompiler.plugins.custom_layers import register_kernel


@tensorop("soft_gate")
class SoftGate(TensorOp):
    """x * sigmoid(alpha * gate), both of one shape."""

    x = operand()
    gate = operand()
    alpha = attr(float, 1.0)

    def infer(self) -> TensorType:
        if self.x.shape != self.gate.shape:
            raise self.shape_error(f"x is {list(self.x.shape)}, gate {list(self.gate.shape)}")
        return TensorType(self.x.shape, self.x.dtype)

    def evaluate(self, x: np.ndarray, gate: np.ndarray) -> np.ndarray:
        return (x / (1 + np.exp(-self.alpha * gate.astype(np.float64)))).astype(x.dtype)


@onnx_op("SoftGate", domain="my.layers")
def convert(node: Node, b: Builder) -> Value:
    return b.soft_gate(node.input(0), node.input(1), alpha=node.float("alpha", 1.0))


@register_kernel("bm1684")
class SoftGateKernel(ElementwiseKernel[SoftGate]):
    """Tiles, broadcasts, evaluates and emits the recipe below; values may stay in local memory between ops."""

    ops = (SoftGate,)

    def recipe(self, op: SoftGate) -> tuple[Any, ...]:
        return gated, op.alpha


def gated(m: Recorder, x: Register, gate: Register, alpha: float) -> Register:
    """The steps in the arithmetic of the chip; further arguments follow the operands."""
    return m.mul(x, sigmoid(m, m.mul(gate, alpha)))
