"""The coefficient memory of a program: each constant once per layout a kernel wants it in."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from bmcompiler.ir import Module, Value


class Coefficients:
    """Packed constants, one after the other.

    Args:
        module: owner of the weights.
        align: every constant starts at a multiple of it, in bytes.
    """

    def __init__(self, module: Module, align: int = 16) -> None:
        self.module, self.align = module, align
        self._offsets: dict[Hashable, int] = {}
        self._chunks: list[bytes | memoryview] = []
        self.size = 0

    def array(self, value: Value) -> np.ndarray:
        """The constant behind a weight op's result."""
        assert value.op is not None, "weights are made by an op"
        return self.module.weights[value.op.attributes["key"]]

    def place(self, value: Value, layout: str, pack: Callable[..., np.ndarray], *more: Value) -> int:
        """Offset of the packed form of a constant, or of several that `pack` gets in this order.

        `layout` names what `pack` does, so that it is stored once.
        """
        constants = (value, *more)
        key = (*(one.op.attributes["key"] for one in constants if one.op is not None), layout)
        if key not in self._offsets:
            self._offsets[key] = self.add(_bytes_of(pack(*map(self.array, constants))))
        return self._offsets[key]

    def constant(self, data: bytes) -> int:
        """Offset of literal bytes, shared by all who ask for the same."""
        if data not in self._offsets:
            self._offsets[data] = self.add(data)
        return self._offsets[data]

    def add(self, data: bytes | memoryview) -> int:
        """Offset of new bytes, which stay as they are until `blob` has them."""
        offset = self.size
        padding = -len(data) % self.align
        self._chunks += [data, bytes(padding)]
        self.size += len(data) + padding
        return offset

    def blob(self) -> bytes:
        """The whole memory."""
        blob = b"".join(self._chunks)
        self._chunks = [blob]
        return blob


def _bytes_of(array: np.ndarray) -> memoryview:
    """The bytes of an array in C order, without a copy where it lies so."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
