"""The simulated BM1684X: 64 lanes, static memory, L2, global memory (bm1684x.md 1).

memories = Memories()                     # all memory is zero
memories.local.bytes[lane, offset]       # one byte of a lane
memories.static, memories.l2              # the bytes of both; GDMA commands find them in `globals`
memories.globals.map(CHIP.global_base, array)
"""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.simulator.bm168x.local import switched_on
from bmcompiler.runtime.simulator.memory import GlobalMemory, LaneMemory


def local_memory(*, poisoned: bool = False) -> LaneMemory:
    """Local memory of a chip, zero; `poisoned`: filled with 0xDEADBEEF, as a chip just switched on has it."""
    return (switched_on if poisoned else LaneMemory)(CHIP.lanes, CHIP.lmem_size)


class Memories:
    """One chip: its local, static and L2 memory, and the global memory it sees.

    Static memory and L2 are part of `globals`, at `CHIP.static_window` and `CHIP.l2_window`. Local memory is `local`,
    or new memory that is zero. Static memory is zero at first; the runtime of the chip fills it with tables.
    """

    def __init__(self, global_memory: GlobalMemory | None = None, *, local: LaneMemory | None = None) -> None:
        self.local = local_memory() if local is None else local
        self.globals = global_memory or GlobalMemory()
        self.static: Bytes = np.zeros(CHIP.static_size, np.uint8)
        self.l2: Bytes = np.zeros(CHIP.l2_size, np.uint8)
        self.kept = 0
        """Elements that the last masked select or nonzero kept: a register of the GDMA."""
        self.globals.map(CHIP.static_window, self.static)
        self.globals.map(CHIP.l2_window, self.l2)
