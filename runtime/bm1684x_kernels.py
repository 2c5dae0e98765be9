"""Kernels on the simulated BM1684X: memory of the device, launches, and what is where afterwards.

device = KernelDevice()
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
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.static_tables import static_memory
from bmcompiler.backends.bm1684x.tpukernel import Program, aligned, data_type_t, dim4
from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.bm168x_kernels import Bm168xKernels
from bmcompiler.runtime.simulator.bm1684x import Memories, compile_plan
from bmcompiler.runtime.simulator.bm1684x.analysis import analyze

_TYPES = {
    data_type_t.DT_UINT8: np.uint8,
    data_type_t.DT_INT8: np.int8,
    data_type_t.DT_FP16: np.float16,
    data_type_t.DT_FP32: np.float32,
    data_type_t.DT_UINT16: np.uint16,
    data_type_t.DT_INT16: np.int16,
    data_type_t.DT_UINT32: np.uint32,
    data_type_t.DT_INT32: np.int32,
    data_type_t.DT_BFP16: np.uint16,
}


class KernelDevice(Bm168xKernels[Program]):
    """A chip with so many bytes of global memory; static memory holds its tables, everything else is zero.

    Array types are numpy's, or the library's: of DT_BFP16 an array holds the bits.
    """

    def __init__(self, global_bytes: int = 1 << 26) -> None:
        self._memories = Memories()
        planned = partial(compile_plan, memories=self._memories)
        super().__init__(CHIP, CHIP.global_base, global_bytes, planned, analyze)
        self._memories.static[...] = static_memory()
        self._memories.globals.map(CHIP.global_base, self._global)

    def download(self, address: int, shape: Sequence[int], dtype: DTypeLike | data_type_t = np.float32) -> Array:
        """A copy of an array in global memory."""
        return self._read(address, shape, _numpy(dtype))

    def local(
        self, address: int, shape: Sequence[int], dtype: data_type_t, strides: Sequence[int] | None = None
    ) -> Array:
        """A copy of a tensor in local memory as (n, c, h, w), in the aligned layout unless it has strides.

        Raises:
            SimulatorError: it leaves the lanes.
        """
        size, kind = dim4(*shape), _numpy(dtype)
        lane, offset = divmod(address, CHIP.lmem_size)
        steps = aligned(lane, size, dtype) if strides is None else dim4(*strides)
        n, c, h, w = (step * kind.itemsize for step in steps)
        return self._memories.local.tensor(lane, offset, size, (n, c, h, w), kind).read().copy()


def _numpy(dtype: DTypeLike | data_type_t) -> np.dtype[Any]:
    return np.dtype(_TYPES[dtype] if isinstance(dtype, data_type_t) else dtype)
