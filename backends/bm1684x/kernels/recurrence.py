"""Steps of recurrent layers of f32 and of 16-bit floats."""

from __future__ import annotations

from typing import Any

from bmcompiler.backends.bm1684x.kernels.half_recurrence import HalfRecurrenceKernel
from bmcompiler.backends.bm1684x.kernels.transposed_recurrence import (
    TransposedHalfRecurrenceKernel,
    TransposedRecurrenceKernel,
)
from bmcompiler.backends.lanes.kernels.base import DeviceKernel
from bmcompiler.backends.lanes.kernels.forms import FormsKernel
from bmcompiler.backends.lanes.kernels.sums.recurrence import RecurrenceKernel
from bmcompiler.ops.layers.recurrence import Recurrence


class RecurrenceForms(FormsKernel[Recurrence]):
    """Steps of a recurrent layer, whose weights are in local memory."""

    ops = (Recurrence,)
    kinds = (RecurrenceKernel, HalfRecurrenceKernel, TransposedRecurrenceKernel, TransposedHalfRecurrenceKernel)

    def form(self, op: Recurrence) -> DeviceKernel[Any]:
        return self.forms[2 * op.by_gate + (op.gates.dtype != "f32")]
