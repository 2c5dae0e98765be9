"""Kernels on the simulated BM1684: memory of the device, launches, and what is where afterwards.

device = OkkernelDevice()
x = device.upload(array)
y = device.malloc(array.nbytes)
program = my_kernel(y, x)
device.launch(program)
result = device.download(y, array.shape)
cycles = device.analyze(program).timing().cycles
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from bmcompiler.backends.bm1684.chip import CHIP
from bmcompiler.backends.bm1684.okkernel import Program, dim4
from bmcompiler.backends.bm1684.okkernel.places import aligned
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.bm168x_kernels import Bm168xKernels
from bmcompiler.runtime.simulator.bm1684.analysis import analyze
from bmcompiler.runtime.simulator.bm1684.memory import Memories
from bmcompiler.runtime.simulator.bm1684.plan import compile_plan


class OkkernelDevice(Bm168xKernels[Program]):
    """A chip with so many bytes of global memory; L2 holds its tables, everything else is zero."""

    def __init__(self, global_bytes: int = 1 << 26) -> None:
        self._memories = Memories()
        planned = partial(compile_plan, memories=self._memories)
        super().__init__(CHIP, CHIP.global_base, global_bytes, planned, analyze)
        self._memories.globals.map(CHIP.global_base, self._global)

    def download(self, address: int, shape: Sequence[int], dtype: DTypeLike = np.float32) -> Array:
        """A copy of an array in global memory."""
        return self._read(address, shape, dtype)

    def local(
        self, address: int, shape: Sequence[int], dtype: DTypeLike = np.float32, strides: Sequence[int] | None = None
    ) -> Array:
        """A copy of a tensor in local memory as (n, c, h, w), in the aligned layout unless it has strides.

        Raises:
            SimulatorError: it leaves the lanes.
        """
        size, kind = dim4(*shape), np.dtype(dtype)
        lane, offset = divmod(address, CHIP.lmem_size)
        steps = aligned(lane, size, kind.itemsize) if strides is None else dim4(*strides)
        n, c, h, w = (step * kind.itemsize for step in steps)
        return self._memories.local.tensor(lane, offset, size, (n, c, h, w), kind).read().copy()
