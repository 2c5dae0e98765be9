"""Device memory of loaded nets: what they share, and what each has of its own (bm1684x-llm.md 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.simulated import SharedChip, zeros
from bmcompiler.runtime.simulator.memory import LaneMemory


class DeviceBlock(NamedTuple):
    """A piece of device memory: its address, where somebody can ask for it, and its bytes."""

    address: int
    data: Bytes


def host_block(size: int) -> DeviceBlock:
    """Zeroed memory of this host, which has no address. Raises RuntimeUseError when there is not as much."""
    return DeviceBlock(0, zeros(size))


class Bm168xMemory(SharedChip[LaneMemory]):
    """What the nets of one user share: local memory, and neuron memory, where nothing outlasts the next run.

    Args: allocate: gives that many zeroed bytes.
    """

    def __init__(self, local: LaneMemory, allocate: Callable[[int], DeviceBlock] = host_block) -> None:
        super().__init__(local)
        self.allocate = allocate
        self._neuron = host_block(0)

    def neuron(self, size: int) -> DeviceBlock:
        """At least `size` bytes; a model that needs more than those before it gets memory that is larger."""
        if self._neuron.data.size < size:
            self._neuron = self.allocate(size)
        return self._neuron


@dataclass(eq=False)
class LoadedNet:
    """The memory of a net besides its coefficients, allocated when it is first used.

    Attributes:
        shared: what it shares with other nets.
        neuron_size: bytes of neuron memory that the largest stage of its model needs.
        io_size: bytes of io memory, which is its own and that of all its stages.
    """

    shared: Bm168xMemory
    neuron_size: int
    io_size: int

    @cached_property
    def neuron(self) -> DeviceBlock:
        """Neuron memory, which all nets of the model share."""
        return self.shared.neuron(self.neuron_size)

    @cached_property
    def io(self) -> DeviceBlock:
        """Io memory, zero at first; it lasts as long as the net."""
        return self.shared.allocate(self.io_size) if self.io_size else host_block(0)
