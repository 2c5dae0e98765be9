"""Kernels of the BM1684X: one class per family of TensorOps, found by op class."""

from typing import Any

from bmcompiler.backends.bm1684x.kernels.forms import AvgPoolForms, ConvForms, DeconvForms, MatmulForms
from bmcompiler.backends.bm1684x.machine import MACHINE
from bmcompiler.backends.lanes.kernels.activation import ChannelKernel
from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.backends.lanes.kernels.compare import BitKernel, CompareKernel, WhereKernel
from bmcompiler.backends.lanes.kernels.convert import CastKernel
from bmcompiler.backends.lanes.kernels.table import SHARED
from bmcompiler.backends.lanes.kernels.word_forms import BinaryWordsKernel, FunctionWordsKernel, ShiftedWordsKernel

_KINDS: tuple[type[DeviceKernel[Any]], ...] = (
    ConvForms,
    DeconvForms,
    BinaryWordsKernel,
    FunctionWordsKernel,
    ChannelKernel,
    ShiftedWordsKernel,
    MatmulForms,
    AvgPoolForms,
    CastKernel,
    CompareKernel,
    WhereKernel,
    BitKernel,
    *SHARED,
)
KERNELS = tuple(kind(MACHINE) for kind in _KINDS)
