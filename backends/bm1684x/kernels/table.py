"""Kernels of the BM1684X: one class per family of TensorOps, found by op class."""

from typing import Any

from bmcompiler.backends.bm1684x.kernels.forms import (
    AvgPoolForms,
    BinaryForms,
    CastForms,
    ConvForms,
    DeconvForms,
    FunctionForms,
    GatherElementsForms,
    GatherForms,
    GatherNdForms,
    MatmulForms,
    ScatterForms,
    ShiftedForms,
)
from bmcompiler.backends.bm1684x.kernels.head_products import HeadProductKernel
from bmcompiler.backends.bm1684x.kernels.int_elementwise import DequantizeKernel, QuantizeKernel
from bmcompiler.backends.bm1684x.kernels.lut import LutKernel
from bmcompiler.backends.bm1684x.kernels.ranked import TopKKernel
from bmcompiler.backends.bm1684x.kernels.recurrence import RecurrenceForms
from bmcompiler.backends.bm1684x.kernels.weight_only import WeightOnlyKernel
from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.backends.lanes.kernels.functions import convert
from bmcompiler.backends.lanes.kernels.functions.activation import ChannelKernel
from bmcompiler.backends.lanes.kernels.functions.compare import BitKernel, CompareKernel, WhereKernel
from bmcompiler.backends.lanes.kernels.moves.gather import (
    GatherElementsKernel,
    GatherKernel,
    GatherNdKernel,
    ScatterKernel,
)
from bmcompiler.backends.lanes.kernels.table import SHARED

_REPLACED = (
    convert.QuantizeKernel,
    convert.DequantizeKernel,
    GatherKernel,
    GatherElementsKernel,
    GatherNdKernel,
    ScatterKernel,
)
"""Whose ops have more forms here."""
KINDS: tuple[type[DeviceKernel[Any]], ...] = (
    ConvForms,
    DeconvForms,
    BinaryForms,
    FunctionForms,
    ChannelKernel,
    ShiftedForms,
    LutKernel,
    QuantizeKernel,
    DequantizeKernel,
    MatmulForms,
    WeightOnlyKernel,
    HeadProductKernel,
    RecurrenceForms,
    AvgPoolForms,
    CastForms,
    GatherForms,
    GatherElementsForms,
    GatherNdForms,
    ScatterForms,
    TopKKernel,
    CompareKernel,
    WhereKernel,
    BitKernel,
    *(kind for kind in SHARED if kind not in _REPLACED),
)
"""All of them, constructed with the machine of a compilation."""
