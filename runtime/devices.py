"""Devices that run compiled models, found by target name through the entry-point group `bmcompiler.devices`.

A device is a chip or its simulator. `Session` uses nothing but `Device` and `Program`, so it serves every target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.bm1880.chip import align_up
from bmcompiler.bmodel import BModel, TensorInfo
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command
from bmcompiler.errors import RuntimeUseError, UnsupportedError
from bmcompiler.registry import lookup
from bmcompiler.runtime.simulator.bm1880.memory import GlobalMemory, LocalMemory, Machine
from bmcompiler.runtime.simulator.bm1880.plan import Plan, compile_plan

MAX_DEVICES = 8  # bm1880.md 13
FIRST_ADDRESS = 0x2800000  # first allocation in device memory (bm1880.md 13)
PAGE = 4096

Array = NDArray[Any]


class Program(ABC):
    """One program of a loaded model: a fixed set of input shapes."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    @abstractmethod
    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Execute once.

        Args: inputs: device values in the order of `inputs`, of their exact shapes and dtypes.
        Returns: new arrays of device values in the order of `outputs`.
        Raises: SimulatorError naming the command that fails.
        """


class Device(ABC):
    """A place where models of one target run; `index` tells several of a kind apart.

    A device that can be faster at the price of other results says in `fast_mode` what is different, and takes the
    argument `fast`.
    """

    fast_mode: ClassVar[str] = ""

    def __init__(self, index: int = 0) -> None:
        if not 0 <= index < MAX_DEVICES:
            raise RuntimeUseError(f"there is no device {index}", remedy=f"choose 0 to {MAX_DEVICES - 1}")
        self.index = index

    @abstractmethod
    def load(self, model: BModel) -> list[Program]:
        """All programs of a model, in file order. Raises UnsupportedError for a model of another chip."""


def open_device(target: str, index: int = 0, fast: bool = False) -> Device:
    """Device number `index` for models of `target`, in its fast mode if wanted.

    Raises UnsupportedError when no device plug-in serves the target, or it has no fast mode.
    """
    kind = lookup("bmcompiler.devices", target, "device")
    if fast and not getattr(kind, "fast_mode", ""):
        raise UnsupportedError(f"{target} has one way of running, no fast mode", remedy="leave out --fast (fast=True)")
    device = kind(index, fast=True) if fast else kind(index)
    if not isinstance(device, Device):
        raise UnsupportedError(f"device plug-in '{target}' is not a Device")
    return device


class Bm1880Device(Device):
    """The bit-accurate BM1880 simulator."""

    def load(self, model: BModel) -> list[Program]:
        if not isinstance(model, Bm1880Model):
            raise UnsupportedError(f"a bm1880 device cannot run models for {model.target}")
        chip = _SharedChip()
        weights = [np.frombuffer(data, np.uint8) for data in model.weights]
        nothing = np.empty(0, np.uint8)
        return [
            Bm1880Program(command, weights[command.weight_index] if weights else nothing, chip)
            for command in model.commands
        ]


class _SharedChip:
    """Local memory that the programs of a model share; only the holder of the lock may run."""

    def __init__(self) -> None:
        self.local, self.lock = LocalMemory(), Lock()


class Bm1880Program(Program):
    """One command buffer with memory of its own. It is allocated, and the plan compiled, at the first run."""

    def __init__(self, command: Command, weights: NDArray[np.uint8], chip: _SharedChip) -> None:
        self.inputs, self.outputs = tuple(command.inputs), tuple(command.outputs)
        self._command, self._weights, self._chip = command, weights, chip
        self._ready: tuple[Plan, NDArray[np.uint8]] | None = None

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        with self._chip.lock:
            self._ready = self._ready or self._prepare()
            plan, neuron = self._ready
            for info, value in zip(self.inputs, inputs):
                data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
                neuron[info.offset : info.offset + data.size] = data
            plan.run()
            return [
                neuron[info.offset : info.offset + info.size].copy().view(info.dtype).reshape(info.shape)
                for info in self.outputs
            ]

    def _prepare(self) -> tuple[Plan, NDArray[np.uint8]]:
        size = self._command.neuron_size
        try:
            neuron = np.zeros(size, np.uint8)
        except MemoryError as error:
            reason = f"the program needs {size} bytes of activation memory, more than this host has"
            raise RuntimeUseError(reason) from error
        memory = GlobalMemory()
        neuron_base = FIRST_ADDRESS + align_up(self._weights.size, PAGE)
        memory.map(FIRST_ADDRESS, self._weights)
        memory.map(neuron_base, neuron)
        machine = Machine(memory, self._chip.local)
        return compile_plan(self._command.cmdbuf, machine, neuron_base, FIRST_ADDRESS), neuron
