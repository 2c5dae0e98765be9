"""Loads inside the work of a tile."""

from __future__ import annotations

from typing import NamedTuple


class Stream(NamedTuple):
    """Loads that a computation issues itself, beside its steps.

    Each step from the third on works on a load of its own, into the place that the step two before it worked on.

    Attributes:
        steps: cycles of computing, of each. loads: cycles of moving, of those of the third step and later ones.
        nbytes: of all loads. coefficient: whether they are weights.
    """

    steps: tuple[int, ...]
    loads: tuple[int, ...]
    nbytes: int
    coefficient: bool

    def times(self, start: float, moving: float) -> tuple[float, float]:
        """When the last step and the last load end, of what starts with the bus busy until `moving`."""
        ends: list[float] = []
        for number, cycles in enumerate(self.steps):
            if number > 1:
                moving = max(moving, ends[number - 2]) + self.loads[number - 2]
                start = max(start, moving)
            start += cycles
            ends.append(start)
        return start, moving
