"""Ops that hold the IR together."""

from __future__ import annotations

import numpy as np

from bmcompiler.ir import Module, TensorType
from bmcompiler.ops.base import TensorOp, attr, tensorop


@tensorop("weight")
class Weight(TensorOp):
    """A constant tensor, kept in the module's weights.

    %w = "tensorop.weight"() {key = "conv1.weight"} : () -> tensor<20x1x5x5xf32>

    `sha256` is written with the side file and checked when it is read back.
    """

    key = attr(str)
    sha256 = attr(str, "")
    free_dtype = True

    @property
    def array(self) -> np.ndarray | None:
        """The elements, None for an op that is in no module."""
        return None if self.enclosing is None else self.enclosing.weights.get(self.key)

    def infer(self) -> TensorType:
        return self.results[0].type if self.results else TensorType(())

    def verify_op(self, module: Module) -> None:
        array = module.weights.get(self.key)
        if array is None:
            raise self.invalid(f"no weight is called '{self.key}'")
        if tuple(array.shape) != self.type.shape or array.dtype != self.type.numpy:
            raise self.invalid(f"weight '{self.key}' is {array.dtype}{list(array.shape)}, declared {self.type}")
