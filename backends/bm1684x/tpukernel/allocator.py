"""Local memory by names instead of addresses, for kernels that want it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.tpukernel.local import Layout, aligned
from bmcompiler.backends.bm1684x.tpukernel.types import data_type_t, dim4
from bmcompiler.chip import align_up
from bmcompiler.errors import UsageError


class LocalMemory:
    """Gives out places in the lanes, each from a multiple of 64 bytes on, the first that is free.

    memory = LocalMemory()
    x = memory.alloc((1, 64, 8, 8), DT_FP32)      # a local address
    memory.free(x)
    """

    def __init__(self, begin: int = 0, end: int = CHIP.lmem_size) -> None:
        """`begin` and `end` are offsets in a lane: what lies outside is not given out."""
        self._begin, self.end = align_up(begin, CHIP.alignment), end
        self._taken: dict[int, int] = {}

    def alloc(
        self,
        shape: Sequence[int],
        dtype: data_type_t,
        lane: int = 0,
        layout: Layout = aligned,
        bank: bool = False,
    ) -> int:
        """The local address of a tensor that begins in `lane`.

        Args:
            shape, dtype: of the tensor. layout: `aligned`, `compact` or `line_aligned`.
            bank: begin at a bank of the lanes, so that what lies in other banks can be used at the same time.

        Raises:
            UsageError: there is no room.
        """
        if not 0 <= lane < CHIP.lanes:
            raise UsageError(f"lane {lane} is none of the lanes 0 to {CHIP.lanes - 1}")
        strides = layout(lane, dim4(*shape), dtype)
        return self.alloc_bytes(shape[0] * strides.n * dtype.size, lane, bank)

    def alloc_bytes(self, size: int, lane: int = 0, bank: bool = False) -> int:
        """The local address of `size` bytes in each lane. Raises UsageError when there is no room."""
        step = CHIP.lmem_bank_size if bank else CHIP.alignment
        room = [(self._begin, 0), *sorted(self._taken.items()), (self.end, 0)]
        for (offset, taken), (after, _) in pairwise(room):
            begin = align_up(offset + taken, step)
            if begin + size <= after:
                self._taken[begin] = align_up(max(size, 1), CHIP.alignment)
                return lane * CHIP.lmem_size + begin
        raise UsageError(
            f"no {size} bytes are free in a lane: {sum(self._taken.values())} of {self.end - self._begin} are taken",
            remedy="free what is not needed any more, or compute in smaller tiles",
        )

    def free(self, address: int) -> None:
        """Give a place back. Raises UsageError when nothing begins there."""
        if self._taken.pop(address % CHIP.lmem_size, None) is None:
            raise UsageError(f"0x{address:x} is not the address of anything allocated")
