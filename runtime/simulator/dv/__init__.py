"""Simulated DV device: raw commands are bound to device memory once and then run as often as wanted."""

from __future__ import annotations

from typing import Protocol

from bmcompiler.backends.dv.arithmetic.accumulate import Accumulator
from bmcompiler.backends.dv.chip import DvChip
from bmcompiler.backends.dv.driver.commands import ConvCommand, FcCommand
from bmcompiler.backends.dv.driver.structs import DeviceType
from bmcompiler.errors import UnsupportedError
from bmcompiler.runtime.simulator.dv.conv import ConvPlan, Memory
from bmcompiler.runtime.simulator.dv.fc import FcPlan, MaximizerPlan

__all__ = ["CommandPlan", "ConvPlan", "FcPlan", "MaximizerPlan", "Memory", "bind_command"]


class CommandPlan(Protocol):
    """A command with its memory resolved."""

    def run(self) -> None:
        """Execute the command on the memory."""


def bind_command(
    kind: DeviceType, data: bytes, chip: DvChip, memory: Memory, accumulator: Accumulator = Accumulator.EXACT
) -> CommandPlan:
    """The plan of a raw command that the driver's checks have accepted.

    Raises UnsupportedError for a meaning that is not documented, SimulatorError for memory outside a buffer.
    """
    if kind == DeviceType.CONV:
        return ConvPlan(ConvCommand.decode(data), memory, accumulator)
    if kind == DeviceType.FC:
        return FcPlan(FcCommand.decode(data), memory, accumulator, by_conv=not chip.fc_freq)
    if kind == DeviceType.MAXIMIZER:
        return MaximizerPlan(data, memory)
    raise UnsupportedError("the simulated device has no IPU")
