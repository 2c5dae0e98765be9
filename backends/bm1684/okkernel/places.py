"""Tensors in local memory as calls name them: layouts, and whether a tensor lies where it may."""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.bm168x.calls import Arguments
from bmcompiler.backends.bm1684.chip import CHIP, align_up
from bmcompiler.backends.bm1684.okkernel.types import dim4
from bmcompiler.errors import UsageError


def lane_of(address: int) -> int:
    """The lane in which a local address lies."""
    return address // CHIP.lmem_size


def aligned(lane: int, shape: dim4, item: int = 4) -> dim4:
    """Strides of the layout whose channels begin at multiples of 128 bytes, in elements of `item` bytes."""
    channel = align_up(shape.h * shape.w, CHIP.alignment // item)
    return dim4(CHIP.channel_rows(lane, shape.c) * channel, channel, shape.w, 1)


def compact(lane: int, shape: dim4) -> dim4:
    """Strides of the layout without gaps between the channels of a lane."""
    channel = shape.h * shape.w
    return dim4(CHIP.channel_rows(lane, shape.c) * channel, channel, shape.w, 1)


def continuous(shape: dim4) -> dim4:
    """Strides outside of local memory, without gaps."""
    return dim4(shape.c * shape.h * shape.w, shape.h * shape.w, shape.w, 1)


class Tensor(NamedTuple):
    """A tensor in local memory; without strides in the aligned layout."""

    address: int
    shape: dim4
    given: dim4 | None = None
    item: int = 4

    @property
    def strides(self) -> dim4:
        """Its strides, or those of the layout."""
        return self.given or aligned(lane_of(self.address), self.shape, self.item)

    @property
    def window(self) -> int:
        """Its address as commands have it."""
        return CHIP.lmem_window + self.address

    @property
    def plain(self) -> bool:
        """Whether it needs no stride registers."""
        return self.given is None and self.address % CHIP.alignment == 0


def tensor(a: Arguments, name: str, shape: dim4, item: int = 4) -> Tensor:
    """The tensor that `NAME_addr` and, where the function has it, `NAME_stride` describe.

    Raises:
        UsageError: it is not aligned to its elements, or ends behind its lane.
    """
    found = Tensor(getattr(a, f"{name}_addr"), shape, a.get(f"{name}_stride"), item)
    lane, offset = divmod(found.address, CHIP.lmem_size)
    if offset % item:
        raise UsageError(f"{name} must begin at a multiple of {item} bytes, got 0x{found.address:x}")
    counts = shape.n, CHIP.channel_rows(lane, shape.c), shape.h, shape.w
    end = offset + item * (1 + sum((count - 1) * step for count, step in zip(counts, found.strides)))
    if end > CHIP.lmem_size:
        raise UsageError(f"{name} ends at byte {end} of its lane, which has {CHIP.lmem_size}")
    return found


def in_default_layout(a: Arguments, name: str, shape: dim4) -> Tensor:
    """`tensor` of a command that has no stride registers. Raises UsageError also where its channels are not aligned."""
    found = tensor(a, name, shape)
    if found.address % CHIP.alignment:
        raise UsageError(f"{name} must begin at a multiple of {CHIP.alignment} bytes, got 0x{found.address:x}")
    return found
