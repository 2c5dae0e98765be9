"""What kernels of the DV700 share: rounding to fp16 and rules about operands.

Values of the IR are float32, values of the device fp16: every operand is rounded on its way in, and every result is an
fp16 number. So a value may pass between device and host any number of times without another change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.dv.build import extent_of
from bmcompiler.backends.dv.stages import to_half
from bmcompiler.backends.dv.structs import Activation
from bmcompiler.codegen.kernels import DeviceKernel, is_constant
from bmcompiler.codegen.memory import root_of
from bmcompiler.errors import UnsupportedError
from bmcompiler.ir import Value
from bmcompiler.ops.base import TensorOp
from bmcompiler.target import rule

ACTIVATIONS = {"": Activation.NONE, "relu": Activation.LEAKY_RELU, "relu6": Activation.RELU6}
"""By the attribute of ops; a leaky ReLU with slope 0 is the ReLU (dv.md 1.3)."""


class DvKernel(DeviceKernel):
    """An op that becomes commands on WHC8 maps of fp16."""

    def maps(self, op: TensorOp) -> list[Value]:
        """Operands that the command reads as feature maps."""
        return [op.operands[0]]

    def refusal(self, op: TensorOp) -> str | None:
        """What the driver's own limits say of the command; asked when all rules hold."""
        return None

    def unsupported_reason(self, op: TensorOp) -> str | None:
        return super().unsupported_reason(op) or self.refusal(op)

    @rule("Operands and results must be f32 (they are rounded to fp16)")
    def computes_floats(self, op: TensorOp) -> bool:
        return all(value.dtype == "f32" for value in (*op.operands, *op.results))

    @rule("Feature maps must not be constants")
    def reads_activations(self, op: TensorOp) -> bool:
        return not any(is_constant(root_of(value)) for value in self.maps(op))

    @rule("Feature maps must be read in the shape they were computed in")
    def keeps_layouts(self, op: TensorOp) -> bool:
        """WHC8 orders elements by the shape of a map; inputs of the net are laid out as they are read."""
        return all(root_of(v).op is None or extent_of(v) == extent_of(root_of(v)) for v in self.maps(op))


def half_weights(array: NDArray[Any]) -> NDArray[np.float16]:
    """Constants rounded to fp16. Raises UnsupportedError when one is beyond its range."""
    rounded = to_half(array)
    if not np.isfinite(rounded).all():
        raise UnsupportedError(
            "a weight or bias is beyond the range of fp16, 65504", remedy="scale the weights of the layer down"
        )
    return rounded


def patterns(array: NDArray[Any]) -> NDArray[np.uint16]:
    """The 16-bit patterns of constants rounded to fp16."""
    return np.ascontiguousarray(half_weights(array)).view(np.uint16)
