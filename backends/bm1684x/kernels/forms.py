"""Ops with float and integer forms, which different kernels compute."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.bm1684x.kernels.conv import ConvKernel, DeconvKernel
from bmcompiler.backends.bm1684x.kernels.halves import FloatCastKernel
from bmcompiler.backends.bm1684x.kernels.indexed.lane_elements import LaneElementsKernel
from bmcompiler.backends.bm1684x.kernels.indexed.scattered_rows import ScatteredRowsKernel
from bmcompiler.backends.bm1684x.kernels.indexed.table_rows import TableRowsKernel
from bmcompiler.backends.bm1684x.kernels.int_conv import IntConvKernel, IntDeconvKernel
from bmcompiler.backends.bm1684x.kernels.int_elementwise import IntegersKernel
from bmcompiler.backends.bm1684x.kernels.int_matmul import IntInnerKernel, IntProductKernel, integer_kernel
from bmcompiler.backends.bm1684x.kernels.int_pool import IntAvgPoolKernel
from bmcompiler.backends.bm1684x.kernels.ordered_rows import OrderedRowsKernel
from bmcompiler.backends.bm1684x.kernels.row_products import HalfMatmulKernel, SingleMatmulKernel
from bmcompiler.backends.lanes.kernels.base import DeviceKernel, is_activation, is_constant
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.backends.lanes.kernels.functions.activation import FunctionKernel
from bmcompiler.backends.lanes.kernels.functions.convert import CastKernel
from bmcompiler.backends.lanes.kernels.functions.elementwise import BinaryKernel
from bmcompiler.backends.lanes.kernels.functions.int_words import IntWordsKernel
from bmcompiler.backends.lanes.kernels.moves.gather import (
    GatherElementsKernel,
    GatherKernel,
    GatherNdKernel,
    IndexKernel,
    ScatterKernel,
)
from bmcompiler.backends.lanes.kernels.sums.float_matmul import FloatMatmulKernel
from bmcompiler.backends.lanes.kernels.windows.float_pool import FloatAvgPoolKernel
from bmcompiler.codegen.pictures import is_picture
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.elements.activation import Relu
from bmcompiler.ops.elements.elementwise import Add, Mul, Sub
from bmcompiler.ops.elements.integer import (
    AddShift,
    AddsShift,
    AffineSum,
    Cast,
    MacShift,
    Maxs,
    Mins,
    MulShift,
    MulsShift,
    RoundRshift,
    SubShift,
)
from bmcompiler.ops.layers.nn import Conv, Deconv, Matmul
from bmcompiler.ops.layers.pool import AvgPool
from bmcompiler.ops.places.index import Gather, GatherElements, GatherNd, ScatterElements, ScatterNd


class ConvForms(FormsKernel[Conv]):
    """conv of floats and of bytes."""

    ops = (Conv,)
    kinds = (ConvKernel, IntConvKernel)


class DeconvForms(FormsKernel[Deconv]):
    """deconv of floats and of bytes."""

    ops = (Deconv,)
    kinds = (DeconvKernel, IntDeconvKernel)


class _IndexForms(FormsKernel[TensorOp]):
    """Elements by few constant indices, in copies, or by indices that are data: many, computed or given."""

    def form(self, op: TensorOp) -> DeviceKernel[Any]:
        copies = self.forms[0]
        assert isinstance(copies, IndexKernel), "the form of constants"
        if is_constant(op.operands[1]) and copies.few_indices(op):
            return copies
        return next(
            (form for form in self.forms if isinstance(form, LaneElementsKernel) and _takes(form, op)), self.forms[1]
        )


def _takes(form: LaneElementsKernel, op: Any) -> bool:
    return form.unsupported_reason(op) is None and form.is_quicker(op)


class GatherForms(_IndexForms):
    """gather by constants, few or many, and of rows of a table by indices that the net computes or is given."""

    ops = (Gather,)
    kinds = (GatherKernel, TableRowsKernel, OrderedRowsKernel, LaneElementsKernel)

    def form(self, op: TensorOp) -> DeviceKernel[Any]:
        assert isinstance(op, Gather), "the ops of this class"
        many = is_constant(op.indices) and op.indices.type.size > self.chip.lanes
        rows = many and is_activation(op.x) and op.axis % op.x.type.rank == 0
        return self.forms[2] if rows else super().form(op)


class GatherElementsForms(_IndexForms):
    """gather_elements by constants or not."""

    ops = (GatherElements,)
    kinds = (GatherElementsKernel, TableRowsKernel, LaneElementsKernel)


class GatherNdForms(_IndexForms):
    """gather_nd by constants or not."""

    ops = (GatherNd,)
    kinds = (GatherNdKernel, TableRowsKernel, LaneElementsKernel)


class ScatterForms(_IndexForms):
    """scatter_elements and scatter_nd at constants or not."""

    ops = (ScatterElements, ScatterNd)
    kinds = (ScatterKernel, ScatteredRowsKernel)


class MatmulForms(FormsKernel[Matmul]):
    """matmul of f32 (in sections of columns, or rows in lanes), of 16-bit floats, of bytes with constants or not."""

    ops = (Matmul,)
    kinds = (FloatMatmulKernel, SingleMatmulKernel, HalfMatmulKernel, IntInnerKernel, IntProductKernel)

    def form(self, op: Matmul) -> DeviceKernel[Any]:
        floats, rows, halves, inner, general = self.forms
        if op.left.type.is_float:
            assert isinstance(rows, SingleMatmulKernel), "the form of one matrix"
            return halves if op.left.dtype != "f32" else rows if rows.is_quicker(op) else floats
        return integer_kernel(op, inner, general)


class CastForms(FormsKernel[Cast]):
    """cast between float types, and from and to integers."""

    ops = (Cast,)
    kinds = (FloatCastKernel, CastKernel)

    def form(self, op: Cast) -> DeviceKernel[Any]:
        of_floats = op.x.type.is_float or (op.x.dtype == "u8" and is_picture(op.x))
        return self.forms[not (op.type.is_float and of_floats)]


class AvgPoolForms(FormsKernel[AvgPool]):
    """avg_pool of floats and of bytes."""

    ops = (AvgPool,)
    kinds = (FloatAvgPoolKernel, IntAvgPoolKernel)


class _IntegerForms(FormsKernel[TensorOp]):
    """Integers of one shape by commands on them as they are, others as words; floats by a kernel of their own."""

    in_words: tuple[type[TensorOp], ...] = ()
    """Ops whose integers are computed as words, where operands repeat."""

    def form(self, op: TensorOp) -> DeviceKernel[Any]:
        *floats, native, words = self.forms
        if floats and not (op.results[0].type.is_integer and isinstance(op, (*IntegersKernel.ops, *self.in_words))):
            return floats[0]
        return native if isinstance(op, native.ops) and native.unsupported_reason(op) is None else words


class BinaryForms(_IntegerForms):
    """add, sub, mul, max and min of floats and integers; div and pow of floats."""

    ops = BinaryKernel.ops
    kinds = (BinaryKernel, IntegersKernel, IntWordsKernel)
    in_words = (Add, Sub, Mul)


class FunctionForms(_IntegerForms):
    """Functions of one float tensor, relu also of integers."""

    ops = FunctionKernel.ops
    kinds = (FunctionKernel, IntegersKernel, IntWordsKernel)
    in_words = (Relu,)


class ShiftedForms(_IntegerForms):
    """Sums and products of integers with a rounding shift."""

    ops = (AddShift, SubShift, MulShift, MulsShift, AddsShift, RoundRshift, MacShift, AffineSum, Maxs, Mins)
    kinds = (IntegersKernel, IntWordsKernel)
