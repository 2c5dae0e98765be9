"""Loads inside the work of a tile."""

from __future__ import annotations

from typing import NamedTuple


class Stream(NamedTuple):
    """Loads that a computation issues itself, beside its steps.

    Each step from the third on works on a load of its own. Loads take places in turn, which so many steps then share.

    Attributes:
        steps: cycles of computing, of each. loads: cycles of moving, of those of the third step and later ones.
        nbytes: of all loads. coefficient: whether they are weights.
        places: two or more; with three the bus need not wait for the first step, nor the next stream for the last one.
    """

    steps: tuple[int, ...]
    loads: tuple[int, ...]
    nbytes: int
    coefficient: bool
    places: int = 2

    def times(self, start: float, moving: float) -> tuple[float, float]:
        """When the last step and the last load end, of what starts with the bus busy until `moving`."""
        ends: list[float] = []
        for number, cycles in enumerate(self.steps):
            if number > 1:
                free = ends[number - self.places] if number >= self.places else 0.0
                moving = max(moving, free) + self.loads[number - 2]
                start = max(start, moving)
            start += cycles
            ends.append(start)
        return start, moving
