"""Kernels of the BM1880: one class per family of TensorOps, found by op class."""

from typing import Any

from bmcompiler.backends.bm1880.kernels.base import DeviceKernel
from bmcompiler.backends.bm1880.kernels.conv import ConvKernel, DeconvKernel
from bmcompiler.backends.bm1880.kernels.custom import CustomKernel
from bmcompiler.backends.bm1880.kernels.elementwise import (
    BitsKernel,
    LutKernel,
    MulShiftKernel,
    MulsShiftKernel,
    PairKernel,
    PreluKernel,
    ReluKernel,
)
from bmcompiler.backends.bm1880.kernels.layout import (
    ConcatKernel,
    PadKernel,
    PermuteKernel,
    RepeatKernel,
    SliceKernel,
    SplitKernel,
    UpsampleKernel,
)
from bmcompiler.backends.bm1880.kernels.mac_shift import MacShiftKernel
from bmcompiler.backends.bm1880.kernels.matmul import MatmulKernel
from bmcompiler.backends.bm1880.kernels.pool import AvgPoolKernel, MaxPoolKernel
from bmcompiler.backends.lanes.kernels.moves.view import ViewKernel

KINDS: tuple[type[DeviceKernel[Any]], ...] = (
    ConvKernel,
    DeconvKernel,
    MatmulKernel,
    MaxPoolKernel,
    AvgPoolKernel,
    ReluKernel,
    PairKernel,
    BitsKernel,
    MulsShiftKernel,
    MacShiftKernel,
    MulShiftKernel,
    LutKernel,
    PreluKernel,
    ConcatKernel,
    SplitKernel,
    SliceKernel,
    PermuteKernel,
    RepeatKernel,
    PadKernel,
    UpsampleKernel,
    ViewKernel,
    CustomKernel,
)
"""All of them, constructed with the machine of a compilation."""
