"""Global memory of a device for kernels: what is given out, and arrays that go in and come back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from bmcompiler.chip import align_up
from bmcompiler.errors import RuntimeUseError
from bmcompiler.numeric.arrays import Array, Bytes

_STEP = 512  # transfers from multiples of it are the fastest


class KernelMemory:
    """So many bytes of global memory from an address on, zero at first."""

    def __init__(self, base: int, global_bytes: int) -> None:
        self._base = base
        self._global = np.zeros(global_bytes, np.uint8)
        self._taken = 0

    def malloc(self, size: int) -> int:
        """The address of `size` fresh bytes of global memory. Raises RuntimeUseError when there are not so many."""
        begin = self._taken
        if begin + size > self._global.size:
            raise RuntimeUseError(
                f"{size} bytes are asked for, {self._global.size - begin} of global memory are left",
                remedy=f"make the device with more, {type(self).__name__}(global_bytes=...)",
            )
        self._taken = align_up(begin + size, _STEP)
        return self._base + begin

    def free_all(self) -> None:
        """Take back all that was given out; its bytes stay as they are."""
        self._taken = 0

    def upload(self, values: ArrayLike, address: int | None = None) -> int:
        """Put an array, without gaps, into global memory; returns its address."""
        data = np.ascontiguousarray(values)
        address = self.malloc(data.nbytes) if address is None else address
        self._bytes(address, data.nbytes)[...] = data.reshape(-1).view(np.uint8)
        return address

    def _read(self, address: int, shape: Sequence[int], dtype: DTypeLike) -> Array:
        kind = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        return self._bytes(address, count * kind.itemsize).copy().view(kind).reshape(shape)

    def _bytes(self, address: int, size: int) -> Bytes:
        begin = address - self._base
        if not 0 <= begin <= begin + size <= self._global.size:
            raise RuntimeUseError(f"0x{address:x} and {size} bytes from there are no global memory of the device")
        return self._global[begin : begin + size]
