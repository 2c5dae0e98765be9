"""Element-wise kernels of chips that compute integers on fp32 words alone: of floats, and of integers."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.lanes.kernels.activation import FunctionKernel
from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.backends.lanes.kernels.elementwise import BinaryKernel
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.backends.lanes.kernels.int_words import IntWordsKernel
from bmcompiler.ops.activation import Relu
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elementwise import Add, Mul, Sub
from bmcompiler.ops.integer import AddShift, AddsShift, MacShift, MulShift, MulsShift, RoundRshift, SubShift


class ShiftedWordsKernel(IntWordsKernel):
    """Sums and products of integers with a rounding shift."""

    ops = (AddShift, SubShift, MulShift, MulsShift, AddsShift, RoundRshift, MacShift)


class BinaryWordsKernel(FormsKernel[TensorOp]):
    """add, sub, mul of floats and integers; div, max, min and pow of floats."""

    ops = BinaryKernel.ops
    kinds = (BinaryKernel, IntWordsKernel)

    def form(self, op: TensorOp) -> DeviceKernel[Any]:
        return self.forms[not op.type.is_float and isinstance(op, (Add, Sub, Mul))]


class FunctionWordsKernel(FormsKernel[TensorOp]):
    """Functions of one float tensor, relu also of integers."""

    ops = FunctionKernel.ops
    kinds = (FunctionKernel, IntWordsKernel)

    def form(self, op: TensorOp) -> DeviceKernel[Any]:
        return self.forms[not op.type.is_float and isinstance(op, Relu)]
