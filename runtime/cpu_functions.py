"""Host functions that CPU records call by name (bm1880.md 3 and 14).

A function gets the memory of the running program and the parameter bytes of its record. Functions register themselves
by `register_cpu_function`, or lazily through the entry-point group `bmcompiler.cpu_functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bmcompiler.errors import RuntimeUseError
from bmcompiler.numeric.arrays import Bytes
from bmcompiler.plugins.registry import entry_points

ENTRY_POINT_GROUP = "bmcompiler.cpu_functions"


@dataclass(frozen=True)
class CpuMemory:
    """Device memory as a host function sees it: writable uint8 arrays of the activations and of the weights."""

    neuron: Bytes
    weight: Bytes


CpuFunction = Callable[[CpuMemory, bytes], None]


@runtime_checkable
class Preparable(Protocol):
    """A CPU function that can do its work in two steps, so that decoding its parameters is not repeated in each run."""

    def prepare(self, memory: CpuMemory, parameters: bytes) -> Callable[[], None]:
        """What `self(memory, parameters)` does, as a function to call in every run. Raises BMError."""


_functions: dict[str, CpuFunction] = {}


def register_cpu_function(name: str, function: CpuFunction) -> None:
    """Make `function` callable by CPU records of `name` (at most 15 ASCII characters); replaces an earlier one.

    The function reads and writes `memory.neuron` in place and reports bad parameters or data as BMError.
    """
    if not name or len(name) > 15 or not name.isascii():
        raise RuntimeUseError(f"'{name}' cannot name a CPU function: 1 to 15 ASCII characters are needed")
    _functions[name] = function


def bind_cpu_function(function: CpuFunction, memory: CpuMemory, parameters: bytes) -> Callable[[], None]:
    """`function` with its arguments, to call in every run. Raises BMError as its `prepare` does."""
    if isinstance(function, Preparable):
        return function.prepare(memory, parameters)
    return lambda: function(memory, parameters)


def cpu_function(name: str) -> CpuFunction:
    """The function called `name`. Raises RuntimeUseError when there is none."""
    if name not in _functions and name in entry_points(ENTRY_POINT_GROUP):
        _functions[name] = entry_points(ENTRY_POINT_GROUP)[name]()
    if name not in _functions:
        raise RuntimeUseError(
            f"the model calls the CPU function '{name}', which is not registered",
            remedy=f"install the plugin that provides it, or call register_cpu_function('{name}', ...)",
        )
    return _functions[name]
