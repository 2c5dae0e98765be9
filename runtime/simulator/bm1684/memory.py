"""The simulated BM1684: 64 lanes, L2 with its constant tables, global memory."""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684.chip import CHIP, is_local, lane_offset
from bmcompiler.backends.bm1684.tables import l2_tables
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Bytes, Floats
from bmcompiler.runtime.simulator.bm168x.local import switched_on
from bmcompiler.runtime.simulator.memory import GlobalMemory, LaneMemory, Shape, Tensor


def local_memory(*, poisoned: bool = False) -> LaneMemory:
    """Local memory of a chip, zero; or of a chip just switched on, as the vendor's model has it.

    `poisoned` fills it with the word 0xDEADBEEF (bm1684.md 3.1). Programs of the vendor's compiler may read words that
    nothing wrote, so only then do they give the vendor's results.
    """
    return (switched_on if poisoned else LaneMemory)(CHIP.lanes, CHIP.lmem_size)


class Memories:
    """One chip: its local memory, its L2 and the global memory it sees.

    L2 is part of `globals`, where GDMA finds it, at `CHIP.l2_window`. It is zero at first but for its tables. Local
    memory is `local`, or new memory, `poisoned` or not (`local_memory`).
    """

    def __init__(
        self, global_memory: GlobalMemory | None = None, *, local: LaneMemory | None = None, poisoned: bool = False
    ) -> None:
        self.local = local_memory(poisoned=poisoned) if local is None else local
        self.globals = global_memory or GlobalMemory()
        self.l2: Bytes = np.zeros(CHIP.l2_size, np.uint8)
        tables = l2_tables()
        self.l2[CHIP.l2_tables : CHIP.l2_tables + tables.size] = tables
        self.globals.map(CHIP.l2_window, self.l2)

    def local_tensor(self, address: int, shape: Shape, strides: Shape, dtype: np.dtype) -> Tensor:
        """Tensor at a descriptor address in local memory; strides (n, c, h, w) in bytes.

        Raises SimulatorError when the address or an element is outside local memory.
        """
        if not is_local(address):
            raise SimulatorError(f"address 0x{address:x} is not in local memory")
        lane, offset = lane_offset(address)
        return self.local.tensor(lane, offset, shape, strides, dtype)

    def table(self, offset: int, entries: int) -> Floats:
        """`entries` fp32 words at byte `offset` of L2, as a view. Raises SimulatorError outside L2."""
        if offset % 4 or not 0 <= offset <= CHIP.l2_size - 4 * entries:
            raise SimulatorError(f"a table of {entries} words at offset 0x{offset:x} does not lie in L2")
        return self.l2[offset : offset + 4 * entries].view(np.float32)
