"""One GDMA command: its tensors in the memories of a machine (bm1684x.md 3.1, 3.3)."""

from __future__ import annotations

from bmcompiler.runtime.simulator.bm1684x.machine import Machine
from bmcompiler.runtime.simulator.machine import Fields


class Transfer:
    """One GDMA command."""

    def __init__(self, machine: Machine, fields: Fields) -> None:
        self.machine, self.fields = machine, fields
