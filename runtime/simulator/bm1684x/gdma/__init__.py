"""GDMA commands (bm1684x.md 3)."""

from __future__ import annotations

from bmcompiler.errors import SimulatorError
from bmcompiler.runtime.simulator.bm1684x.gdma.transfer import Transfer
from bmcompiler.runtime.simulator.plan import Step


def gdma_step(transfer: Transfer) -> Step:
    """Step of one GDMA command. Raises SimulatorError for forms whose meaning is unknown and for bad operands."""
    raise SimulatorError(f"what a transfer of type {transfer.fields['cmd_type']} does is not known")
