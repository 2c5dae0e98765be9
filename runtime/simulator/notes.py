"""What commands touch, noted while they are bound to memories that execute nothing: the race check's input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from bmcompiler.runtime.simulator.boxes import LOCAL, Boxes, Four, Use
from bmcompiler.runtime.simulator.memory import UNSIGNED, GlobalMemory, LaneMemory, Shape, Tensor
from bmcompiler.runtime.simulator.races import Accesses

LOCAL_SPACE = "bytes {lo} to {hi} of lanes {row_lo} to {row_hi}"
"""How messages name bytes of local memory."""
ON_CHIP = 1
"""Number of the memory besides local memory in which both engines meet."""
_FAR = 2
_WRITTEN = ("res0", "res1", "dst", "dst_index")


class Note(NamedTuple):
    """`item`-byte elements at (lane, offset) of local memory, or at (0, offset) of another; strides in bytes."""

    record: int
    write: bool
    space: int
    lane: int
    offset: int
    shape: Shape
    strides: Shape
    item: int

    def joined(self, other: Note) -> Note | None:
        """Both as one, when the elements of the other follow this one's."""
        follows = other._replace(offset=self.offset, item=self.item) == self
        return (
            self._replace(item=self.item + other.item) if follows and other.offset == self.offset + self.item else None
        )


class Notes:
    """What commands touch. `record` is the one at hand, `write` says how it uses the operand at hand."""

    def __init__(self) -> None:
        self.record, self.write = 0, False
        self.found: list[Note] = []

    def add(self, space: int, place: tuple[int, int], shape: Shape, strides: Shape, item: int) -> None:
        """Note one tensor that the present command touches; rows that continue the last one are joined with it."""
        note = Note(self.record, self.write, space, *place, shape, strides, item)
        joined = self.found[-1].joined(note) if self.found else None
        if joined is None:
            self.found.append(note)
        else:
            self.found[-1] = joined

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is noted inside is read, whatever the operand is called."""
        start = len(self.found)
        yield
        self.found[start:] = [note._replace(write=False) for note in self.found[start:]]

    def accesses(self, lanes: int, lane_size: int, spaces: tuple[str, ...]) -> Accesses:
        """All of it, see `Boxes`."""
        found = Boxes(lanes, lane_size, spaces)
        if self.found:
            record, write, space, lane, offset, shape, strides, item = zip(*self.found)
            place = np.array(lane), np.array(offset)
            shapes, steps = (_four(table) for table in (shape, strides))
            local = np.array(space) == LOCAL
            use = np.array(record), np.array(write)
            found.local(Use(use[0], local, use[1]), place, shapes, steps, np.array(item))
            found.remote(Use(use[0], ~local, use[1]), np.array(space), place[1], shapes, steps, np.array(item))
        return found.result()


def _four(table: tuple[Shape, ...]) -> Four:
    n, c, h, w = np.array(table, np.int64).T
    return n, c, h, w


class NotedLanes(LaneMemory):
    """Local memory that takes notes."""

    def __init__(self, notes: Notes, lanes: int, lane_size: int) -> None:
        super().__init__(lanes, lane_size)
        self._notes = notes

    def tensor(self, lane: int, offset: int, shape: Shape, strides: Shape, dtype: np.dtype[Any] = UNSIGNED) -> Tensor:
        self._notes.add(LOCAL, (lane, offset), shape, strides, dtype.itemsize)
        return super().tensor(lane, offset, shape, strides, dtype)


class Anywhere(GlobalMemory):
    """Global memory in which every tensor has a place, for chips whose engines do not meet there."""

    def tensor(self, address: int, shape: Shape, strides: Shape, dtype: np.dtype[Any] = UNSIGNED) -> Tensor:
        return Tensor(shape, dtype, [(slice(0, shape[1]), np.ndarray(shape, dtype, bytearray(8), 0, (0, 0, 0, 0)))])


class NotedOutside(Anywhere):
    """The on-chip memory behind a window of addresses takes notes, if there is one; other tensors may be anywhere.

    `far`: all other memory takes notes, too.
    """

    def __init__(self, notes: Notes, window: int = 0, size: int = 0, *, far: bool = False) -> None:
        super().__init__()
        self.notes, self._window, self._size, self._far = notes, window, size, far

    def tensor(self, address: int, shape: Shape, strides: Shape, dtype: np.dtype[Any] = UNSIGNED) -> Tensor:
        offset = address - self._window
        if 0 <= offset < self._size:
            self.notes.add(ON_CHIP, (0, offset), shape, strides, dtype.itemsize)
            return GlobalMemory.tensor(self, address, shape, strides, dtype)
        if self._far:
            self.notes.add(_FAR, (0, address), shape, strides, dtype.itemsize)
        return super().tensor(address, shape, strides, dtype)

    def row(self, name: str, offset: int, count: int, item: int) -> None:
        """Note that operand `name` is `count` elements side by side in the on-chip memory."""
        self.operand(name)
        self.notes.add(ON_CHIP, (0, offset), (1, 1, 1, count), (0, 0, 0, item), item)

    def operand(self, name: str) -> None:
        """Operand `name` comes next. What is accumulated to is read, too, but a write meets everything a read does."""
        self.notes.write = name in _WRITTEN

    def accesses(self, lanes: int, lane_size: int, name: str) -> Accesses:
        """All that was noted; `name` is how messages call the on-chip memory."""
        spaces = (LOCAL_SPACE, f"bytes {{lo}} to {{hi}} of {name}", "addresses {lo:#x} to {hi:#x}")
        return self.notes.accesses(lanes, lane_size, spaces if self._far else spaces[:_FAR])


def noted(memory: GlobalMemory) -> NotedOutside:
    """The global memory of a chip that takes notes."""
    assert isinstance(memory, NotedOutside), "only memories that take notes are bound here"
    return memory


class NamedTensors:
    """Mixed into what makes tensors of a command's fields: it tells the memory that takes notes which one comes."""

    memories: Any

    def tensor(self, *operand: Any, **facts: Any) -> Tensor:
        """As the class makes it that this is mixed into; the first argument is the operand's name."""
        noted(self.memories.globals).operand(operand[0])
        made: Tensor = super().tensor(*operand, **facts)  # type: ignore[misc]
        return made
