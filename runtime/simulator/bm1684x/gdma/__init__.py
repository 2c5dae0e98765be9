"""GDMA commands (bm1684x.md 3)."""

from __future__ import annotations

from collections.abc import Callable

from bmcompiler.backends.bm1684x.codes import Move
from bmcompiler.runtime.simulator.bm1684x.gdma.blocks import general_step, matrix_step
from bmcompiler.runtime.simulator.bm1684x.gdma.select import gather_step, nonzero_step, scatter_step, select_step
from bmcompiler.runtime.simulator.bm1684x.gdma.tensors import cw_step, tensor_step
from bmcompiler.runtime.simulator.bm1684x.gdma.transfer import Transfer
from bmcompiler.runtime.simulator.plan import Step, known

STEPS: dict[int, Callable[[Transfer], Step]] = {
    Move.TENSOR: tensor_step,
    Move.MATRIX: matrix_step,
    Move.MASKED_SELECT: select_step,
    Move.GENERAL: general_step,
    Move.CW_TRANSPOSE: cw_step,
    Move.NONZERO: nonzero_step,
    Move.GATHER: gather_step,
    Move.SCATTER: scatter_step,
    Move.SYSTEM: lambda transfer: lambda: None,
}
"""Makers of the steps, by type of command."""


def gdma_step(transfer: Transfer) -> Step:
    """Step of one GDMA command. Raises SimulatorError for forms whose meaning is unknown and for bad operands."""
    return known(STEPS, kind := transfer.fields["cmd_type"], f"a transfer of type {kind}")(transfer)
