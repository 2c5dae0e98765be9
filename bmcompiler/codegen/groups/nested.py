"""Many boxes of one value, asked at once which of them lie within another one, or around it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from bmcompiler.codegen.tiling import Contents


class NestedBoxes:
    """What stripes make or read of a value: a value in a thousand slices is asked for each of them.

    Attributes:
        wholes: places in the sequence of what has no box.

    Args:
        contents: all of one value; None is in none, and around none.
    """

    def __init__(self, contents: Sequence[Contents | None]) -> None:
        self.wholes = [place for place, one in enumerate(contents) if one is not None and one.box is None]
        places: dict[Hashable, list[int]] = defaultdict(list)
        boxes: dict[Hashable, list[list[int]]] = defaultdict(list)
        for place, one in enumerate(contents):
            if one is not None and one.box is not None:
                places[one.layout].append(place)
                boxes[one.layout].append([bound for begin, end in one.box for bound in (begin, -end)])
        self._places = {layout: np.array(found) for layout, found in places.items()}
        self._bounds = {layout: np.array(found) for layout, found in boxes.items()}  # begins, and ends below zero

    def within(self, outer: Contents) -> list[int]:
        """Places of the boxes that lie in that of `outer`, in its layout."""
        return self._where(outer, 1)

    def around(self, inner: Contents) -> list[int]:
        """Places of the boxes that the one of `inner` lies in, in its layout."""
        return self._where(inner, -1)

    def _where(self, contents: Contents, sign: int) -> list[int]:
        bounds = self._bounds.get(contents.layout)
        if contents.box is None or bounds is None:
            return []
        own = np.array([bound for begin, end in contents.box for bound in (begin, -end)])
        found: list[int] = self._places[contents.layout][(sign * (bounds - own) >= 0).all(1)].tolist()
        return found
