"""Average pooling of floats and bytes (bm1684.md 6.2)."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.bm1684.packed.int_avg_pool import PackedAvgPoolKernel, stages
from bmcompiler.backends.bm1684.packed.int_pool import ShiftedAvgPoolKernel, WordAvgPoolKernel
from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.backends.lanes.kernels.float_pool import FloatAvgPoolKernel
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.ops.pool import AvgPool


class AvgPoolKernel(FormsKernel[AvgPool]):
    """avg_pool of floats, and of bytes by a shift or by a factor."""

    ops = (AvgPool,)
    kinds = (FloatAvgPoolKernel, ShiftedAvgPoolKernel, WordAvgPoolKernel, PackedAvgPoolKernel)

    def form(self, op: AvgPool) -> DeviceKernel[Any]:
        if op.input.type.is_float:
            return self.forms[0]
        if not op.scale:
            return self.forms[1]
        return self.forms[2 if stages(op) is None else 3]
