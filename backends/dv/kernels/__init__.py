"""Kernels of the DV700: one class per family of TensorOps, found by op class."""

from typing import Any

from bmcompiler.backends.dv.kernels.base import DvKernel
from bmcompiler.backends.dv.kernels.concat import ConcatKernel
from bmcompiler.backends.dv.kernels.deconv import DeconvKernel
from bmcompiler.backends.dv.kernels.maps import AddKernel, AvgPoolKernel, ConvKernel, MaxPoolKernel
from bmcompiler.backends.dv.kernels.matmul import MatmulKernel
from bmcompiler.backends.dv.kernels.pointwise import ActivationKernel, NegKernel, PreluKernel, ScaleKernel
from bmcompiler.backends.dv.kernels.windows import LrnKernel, PadKernel, UpsampleKernel

KINDS: tuple[type[DvKernel[Any]], ...] = (
    ConvKernel,
    MatmulKernel,
    MaxPoolKernel,
    AvgPoolKernel,
    AddKernel,
    ConcatKernel,
    DeconvKernel,
    ActivationKernel,
    PreluKernel,
    ScaleKernel,
    NegKernel,
    UpsampleKernel,
    PadKernel,
    LrnKernel,
)
