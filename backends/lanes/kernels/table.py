"""Kernels of the house of lanes that chips with fp32 words take as they are."""

from typing import Any

from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.backends.lanes.kernels.compare import FloatTestKernel
from bmcompiler.backends.lanes.kernels.convert import (
    DequantizeKernel,
    DequantizeLinearKernel,
    QuantizeKernel,
    QuantizeLinearKernel,
)
from bmcompiler.backends.lanes.kernels.elementwise import ModKernel
from bmcompiler.backends.lanes.kernels.float_pool import MaxPoolKernel
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
    SplitKernel,
    TriluKernel,
)
from bmcompiler.backends.lanes.kernels.norm import LastAxesNormKernel, LrnKernel, OverAxesNormKernel
from bmcompiler.backends.lanes.kernels.reduce import ArgKernel, CumulateKernel, ReduceKernel
from bmcompiler.backends.lanes.kernels.resample import ResizeKernel, UpsampleKernel
from bmcompiler.backends.lanes.kernels.selected_tiles import PaddingKernel, RepeatingKernel, SlicingKernel
from bmcompiler.backends.lanes.kernels.shifts import ShiftKernel
from bmcompiler.backends.lanes.kernels.softmax import HardmaxKernel, SoftmaxKernel
from bmcompiler.backends.lanes.kernels.transposition import TransposingKernel
from bmcompiler.backends.lanes.kernels.view import ViewKernel

SHARED: tuple[type[DeviceKernel[Any]], ...] = (
    ViewKernel,
    MaxPoolKernel,
    ModKernel,
    QuantizeKernel,
    DequantizeKernel,
    DequantizeLinearKernel,
    QuantizeLinearKernel,
    FloatTestKernel,
    ShiftKernel,
    SoftmaxKernel,
    HardmaxKernel,
    LastAxesNormKernel,
    OverAxesNormKernel,
    LrnKernel,
    ReduceKernel,
    ArgKernel,
    CumulateKernel,
    TransposingKernel,
    ConcatKernel,
    SplitKernel,
    SlicingKernel,
    PaddingKernel,
    RepeatingKernel,
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
)
