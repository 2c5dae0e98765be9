"""Kernels of the BM1684: one class per family of TensorOps, found by op class."""

from typing import Any

from bmcompiler.backends.bm1684.kernels.conv import ConvKernel, DeconvKernel
from bmcompiler.backends.bm1684.kernels.matmul import MatmulKernel
from bmcompiler.backends.bm1684.kernels.pool import AvgPoolKernel
from bmcompiler.backends.bm1684.machine import MACHINE
from bmcompiler.backends.bm1684.packed.bands import FromBandsKernel, RegroupBandsKernel, ToBandsKernel
from bmcompiler.backends.bm1684.packed.int_elementwise import (
    BinaryForms,
    BitForms,
    CastForms,
    ChannelForms,
    CompareForms,
    FunctionForms,
    IntegerKernel,
    WhereForms,
)
from bmcompiler.backends.bm1684.packed.int_lut import LutKernel
from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.backends.lanes.kernels.table import SHARED

_KINDS: tuple[type[DeviceKernel[Any]], ...] = (
    ConvKernel,
    DeconvKernel,
    BinaryForms,
    FunctionForms,
    ChannelForms,
    IntegerKernel,
    LutKernel,
    MatmulKernel,
    AvgPoolKernel,
    CastForms,
    CompareForms,
    WhereForms,
    BitForms,
    ToBandsKernel,
    RegroupBandsKernel,
    FromBandsKernel,
    *SHARED,
)
KERNELS = tuple(kind(MACHINE) for kind in _KINDS)
