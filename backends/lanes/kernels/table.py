"""Kernels of the house of lanes that chips with fp32 words take as they are."""

from typing import Any

from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.backends.lanes.kernels.functions.compare import FloatTestKernel
from bmcompiler.backends.lanes.kernels.functions.convert import (
    DequantizeKernel,
    DequantizeLinearKernel,
    QuantizeKernel,
    QuantizeLinearKernel,
)
from bmcompiler.backends.lanes.kernels.functions.elementwise import ModKernel
from bmcompiler.backends.lanes.kernels.functions.shifts import ShiftKernel
from bmcompiler.backends.lanes.kernels.moves.gather import (
    GatherElementsKernel,
    GatherKernel,
    GatherNdKernel,
    ReverseSequenceKernel,
    ScatterKernel,
)
from bmcompiler.backends.lanes.kernels.moves.interleave import InterleaveKernel
from bmcompiler.backends.lanes.kernels.moves.layout import BitCastKernel, ConcatKernel, SplitKernel, TriluKernel
from bmcompiler.backends.lanes.kernels.moves.packed import PackedKernel
from bmcompiler.backends.lanes.kernels.moves.resample import ResizeKernel, UpsampleKernel
from bmcompiler.backends.lanes.kernels.moves.selected_tiles import PaddingKernel, RepeatingKernel, SlicingKernel
from bmcompiler.backends.lanes.kernels.moves.transposition import TransposingKernel
from bmcompiler.backends.lanes.kernels.moves.view import ViewKernel
from bmcompiler.backends.lanes.kernels.sums.best_boxes import BestBoxesKernel
from bmcompiler.backends.lanes.kernels.sums.norm import LastAxesNormKernel, LrnKernel, OverAxesNormKernel
from bmcompiler.backends.lanes.kernels.sums.reduce import ArgKernel, CumulateKernel, LeadingKernel, ReduceKernel
from bmcompiler.backends.lanes.kernels.sums.softmax import HardmaxKernel, SoftmaxKernel
from bmcompiler.backends.lanes.kernels.windows.float_pool import MaxPoolKernel

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
    LeadingKernel,
    CumulateKernel,
    BestBoxesKernel,
    PackedKernel,
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
