"""What the work of a tile does with each of its inputs alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Portion(NamedTuple):
    """What is done with one input, by `emit(build, input, output)`, which gets the local addresses.

    cycles: of it; transfers: those of them for which it needs the engine that moves data.
    """

    cycles: int
    transfers: int
    emit: Callable[[Any, int, int], None]
