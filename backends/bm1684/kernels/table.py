"""Kernels of the BM1684: one class per family of TensorOps, found by op class."""

from typing import Any

from bmcompiler.backends.bm1684.kernels.conv import ConvKernel, DeconvKernel
from bmcompiler.backends.bm1684.kernels.matmul import MatmulKernel
from bmcompiler.backends.bm1684.kernels.pool import AvgPoolKernel, MaxPoolKernel
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
from bmcompiler.backends.lanes.kernels.compare import FloatTestKernel
from bmcompiler.backends.lanes.kernels.convert import (
    DequantizeKernel,
    DequantizeLinearKernel,
    QuantizeKernel,
    QuantizeLinearKernel,
)
from bmcompiler.backends.lanes.kernels.elementwise import ModKernel
from bmcompiler.backends.lanes.kernels.gather import (
    GatherElementsKernel,
    GatherKernel,
    GatherNdKernel,
    ReverseSequenceKernel,
    ScatterKernel,
)
from bmcompiler.backends.lanes.kernels.interleave import InterleaveKernel
from bmcompiler.backends.lanes.kernels.layout import (
    BitCastKernel,
    ConcatKernel,
    PadKernel,
    PermuteKernel,
    RepeatKernel,
    SliceKernel,
    SplitKernel,
    TriluKernel,
)
from bmcompiler.backends.lanes.kernels.norm import LastAxesNormKernel, LrnKernel, OverAxesNormKernel
from bmcompiler.backends.lanes.kernels.reduce import ArgKernel, CumulateKernel, ReduceKernel
from bmcompiler.backends.lanes.kernels.resample import ResizeKernel, UpsampleKernel
from bmcompiler.backends.lanes.kernels.shifts import ShiftKernel
from bmcompiler.backends.lanes.kernels.softmax import HardmaxKernel, SoftmaxKernel
from bmcompiler.backends.lanes.kernels.view import ViewKernel

_KINDS: tuple[type[DeviceKernel[Any]], ...] = (
    ConvKernel,
    DeconvKernel,
    ViewKernel,
    BinaryForms,
    FunctionForms,
    ChannelForms,
    IntegerKernel,
    LutKernel,
    MatmulKernel,
    MaxPoolKernel,
    AvgPoolKernel,
    ModKernel,
    QuantizeKernel,
    DequantizeKernel,
    DequantizeLinearKernel,
    QuantizeLinearKernel,
    CastForms,
    CompareForms,
    FloatTestKernel,
    WhereForms,
    BitForms,
    ShiftKernel,
    SoftmaxKernel,
    HardmaxKernel,
    LastAxesNormKernel,
    OverAxesNormKernel,
    LrnKernel,
    ReduceKernel,
    ArgKernel,
    CumulateKernel,
    PermuteKernel,
    ConcatKernel,
    SplitKernel,
    SliceKernel,
    PadKernel,
    RepeatKernel,
    UpsampleKernel,
    InterleaveKernel,
    ResizeKernel,
    GatherKernel,
    GatherElementsKernel,
    GatherNdKernel,
    ReverseSequenceKernel,
    ScatterKernel,
    TriluKernel,
    BitCastKernel,
    ToBandsKernel,
    RegroupBandsKernel,
    FromBandsKernel,
)
KERNELS = tuple(kind(MACHINE) for kind in _KINDS)
