"""Devices that run compiled models, found by target name through the entry-point group `bmcompiler.devices`.

A device is a chip or its simulator. `Session` uses nothing but `Device` and `Program`, so it serves every target.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from bmcompiler.bmodel import BModel, TensorInfo
from bmcompiler.errors import RuntimeUseError, UnsupportedError
from bmcompiler.numeric.arrays import Array
from bmcompiler.plugins.registry import lookup
from bmcompiler.spelling import spelled

_PLACES = {"sim": "", "board": "-board"}
MAX_DEVICES = 8  # bm1880.md 13


class LoadedProgram(ABC):
    """One program of a loaded model: a fixed set of input shapes."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    @abstractmethod
    def run(self, inputs: Sequence[Array | None]) -> list[Array]:
        """Execute once.

        Args: inputs: device values in the order of `inputs`, of their exact shapes and `stored` types; None where the
            tensor is kept and stays as it is.
        Returns: new arrays of device values in the order of `outputs`.
        Raises: SimulatorError naming the command that fails.
        """

    def memory(self, info: TensorInfo) -> Array:
        """The memory of one of `inputs` or `outputs` that is kept: device values, which may be written between runs."""
        raise UnsupportedError(f"tensor '{info.name}' has no memory of its own")


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
    def load(self, model: BModel) -> list[LoadedProgram]:
        """All programs of a model, in file order. Raises UnsupportedError for a model of another chip."""


def open_device(target: str, device: int | str = 0, fast: bool = False) -> Device:
    """A device for models of `target`, in its fast mode if wanted.

    Args:
        device: number of a simulated one, or "sim:NUMBER"; "board:NUMBER" is one behind the vendor's libraries.

    Raises:
        UnsupportedError: no device plugin serves the target, or it has no fast mode.
        RuntimeUseError: there is no such device.
    """
    place, index = _place(device)
    kind: Any = lookup("bmcompiler.devices", target + place, "device")
    is_device = isinstance(kind, type) and issubclass(kind, Device)
    if not is_device:
        raise UnsupportedError(f"device plugin '{target}' is not a Device")
    if fast and not kind.fast_mode:
        raise UnsupportedError(f"{target} has one way of running, no fast mode", remedy=f"leave out {spelled('fast')}")
    opened: Device = kind(index, fast=True) if fast else kind(index)
    return opened


def _place(device: int | str) -> tuple[str, int]:
    """What device plugins of a place have behind the target's name, and the number there."""
    kind, _, number = device.partition(":") if isinstance(device, str) else ("sim", "", str(device))
    kind, number = ("sim", kind) if kind.isdecimal() and not number else (kind, number or "0")
    if kind not in _PLACES or not re.fullmatch(r"-?\d{1,9}", number):
        raise RuntimeUseError(f"'{device}' is no device", remedy="choose a number, sim:NUMBER or board:NUMBER")
    return _PLACES[kind], int(number)
