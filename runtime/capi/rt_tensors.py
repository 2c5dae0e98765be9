"""Tensors and shapes of BMRuntime as C has them; every launch reads and writes some."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from bmcompiler.capi.flat import Flat
from bmcompiler.capi.library import CLibrary
from bmcompiler.errors import RuntimeUseError
from bmcompiler.runtime.bmlib.types import MAX_DIMS, bm_device_mem_t, bm_shape_t, bm_tensor_t

_AFTER_SHAPE = 2 + MAX_DIMS  # of a tensor's numbers


class RuntimeTensors:
    """Readers and writers, at addresses; `library` is known when the first of them runs."""

    def __init__(self, library: Callable[[], CLibrary]) -> None:
        self._library = library

    @cached_property
    def _of_shape(self) -> Flat:
        return Flat(self._library().layout("bm_shape_t"))

    @cached_property
    def _of_tensor(self) -> Flat:
        return Flat(self._library().layout("bm_tensor_t"))

    def shape(self, address: int) -> bm_shape_t | None:
        """None for NULL. Raises RuntimeUseError for a number of dimensions that no shape has."""
        return _shape(*self._of_shape.read(address)) if address else None

    def write_shape(self, address: int, shape: bm_shape_t) -> None:
        """Store a shape; sizes that it has not become 0."""
        self._of_shape.write(address, *_numbers(shape))

    def tensor(self, address: int) -> bm_tensor_t | None:
        """None for NULL. Raises RuntimeUseError as `shape` does."""
        if not address:
            return None
        numbers = self._of_tensor.read(address)
        start, reserved, descriptor, flags, size, mode = numbers[_AFTER_SHAPE:]
        memory = bm_device_mem_t(start, size, reserved, descriptor, flags)
        return bm_tensor_t(numbers[0], _shape(*numbers[1:_AFTER_SHAPE]), memory, mode)

    def write_tensor(self, address: int, tensor: bm_tensor_t) -> None:
        """Store a tensor."""
        one = tensor.device_mem
        memory = one.device_addr, one.reserved, one.dmabuf_fd, one.rawflags, one.size
        self._of_tensor.write(address, tensor.dtype, *_numbers(tensor.shape), *memory, tensor.st_mode)

    def shapes(self, address: int, count: int) -> list[Any] | None:
        """An array of shapes; None for NULL."""
        step = self._of_shape.size
        return [self.shape(address + index * step) for index in range(count)] if address else None

    def tensors(self, address: int, count: int) -> list[Any] | None:
        """An array of tensors; None for NULL."""
        step = self._of_tensor.size
        return [self.tensor(address + index * step) for index in range(count)] if address else None

    def write_shapes(self, address: int, shapes: list[Any]) -> None:
        """Fill an array."""
        for index, shape in enumerate(shapes):
            self.write_shape(address + index * self._of_shape.size, shape)

    def write_tensors(self, address: int, tensors: list[Any]) -> None:
        """Fill an array."""
        for index, tensor in enumerate(tensors):
            self.write_tensor(address + index * self._of_tensor.size, tensor)


def _shape(count: int, *dims: int) -> bm_shape_t:
    if not 0 <= count <= MAX_DIMS:
        raise RuntimeUseError(f"shape has {count} dimensions, must be 1..{MAX_DIMS}")
    return bm_shape_t(dims[:count])


def _numbers(shape: bm_shape_t) -> tuple[int, ...]:
    return shape.num_dims, *shape.dims, *[0] * (MAX_DIMS - shape.num_dims)
