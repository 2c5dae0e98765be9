"""Ops with float and integer forms, which different kernels compute."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.bm1684x.kernels.conv import ConvKernel, DeconvKernel
from bmcompiler.backends.bm1684x.kernels.int_conv import IntConvKernel, IntDeconvKernel
from bmcompiler.backends.bm1684x.kernels.int_matmul import IntInnerKernel, IntProductKernel, integer_kernel
from bmcompiler.backends.bm1684x.kernels.int_pool import IntAvgPoolKernel
from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.backends.lanes.kernels.float_matmul import FloatMatmulKernel
from bmcompiler.backends.lanes.kernels.float_pool import FloatAvgPoolKernel
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.ops.nn import Conv, Deconv, Matmul
from bmcompiler.ops.pool import AvgPool


class ConvForms(FormsKernel[Conv]):
    """conv of floats and of bytes."""

    ops = (Conv,)
    kinds = (ConvKernel, IntConvKernel)


class DeconvForms(FormsKernel[Deconv]):
    """deconv of floats and of bytes."""

    ops = (Deconv,)
    kinds = (DeconvKernel, IntDeconvKernel)


class MatmulForms(FormsKernel[Matmul]):
    """matmul of floats, of bytes with constants, and of two tensors of bytes."""

    ops = (Matmul,)
    kinds = (FloatMatmulKernel, IntInnerKernel, IntProductKernel)

    def form(self, op: Matmul) -> DeviceKernel[Any]:
        floats, inner, general = self.forms
        return floats if op.left.type.is_float else integer_kernel(op, inner, general)


class AvgPoolForms(FormsKernel[AvgPool]):
    """avg_pool of floats and of bytes."""

    ops = (AvgPool,)
    kinds = (FloatAvgPoolKernel, IntAvgPoolKernel)
