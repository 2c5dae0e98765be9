"""Ops that need no command."""

from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.codegen import kernels
from bmcompiler.ops.base import TensorOp


class ViewKernel(DeviceKernel[TensorOp], kernels.ViewKernel):
    """reshape: the result is its operand's memory."""
