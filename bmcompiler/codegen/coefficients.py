"""The coefficient memory of the programs of a net: each constant once per layout a kernel wants it in."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from bmcompiler.ir import Module, Value

_HEAD = 16
"""Bytes by which equal constants are looked for."""


class _Memory:
    """Constants one after the other; every one starts at a multiple of `align` bytes."""

    def __init__(self, align: int) -> None:
        self.align, self.size = align, 0
        self.chunks: list[tuple[int, bytes | memoryview]] = []
        self.literals: dict[bytes, int] = {}
        self.known: dict[bytes, list[tuple[int, bytes | memoryview]]] = {}
        self._noted = 0

    def add(self, data: bytes | memoryview) -> int:
        """Offset of new bytes."""
        offset = self.size
        self.chunks.append((offset, data))
        self.size += len(data) + -len(data) % self.align
        return offset

    def share(self) -> None:
        """Let `find` know all that is here."""
        for offset, data in self.chunks[self._noted :]:
            self.known.setdefault(bytes(data[:_HEAD]), []).append((offset, data))
        self._noted = len(self.chunks)

    def find(self, data: bytes | memoryview) -> int | None:
        """Offset of shared bytes that begin with these."""
        alike = self.known.get(bytes(data[:_HEAD]), ())
        return next((offset for offset, other in alike if len(other) >= len(data) and other[: len(data)] == data), None)

    def joined(self) -> bytes:
        """All of it."""
        if len(self.chunks) != 1 or len(self.chunks[0][1]) != self.size:
            parts = [part for _, data in self.chunks for part in (data, bytes(-len(data) % self.align))]
            self.chunks, self._noted = [(0, b"".join(parts))], 0
        return bytes(self.chunks[0][1])


class Coefficients:
    """Packed constants of a program; those of the programs before it are found by what they hold, not by their names.

    A table that grows with the sizes of a net (positions of tokens) is the beginning of that of a larger program.

    Args:
        module: owner of the weights.
        align: every constant starts at a multiple of it, in bytes.
        before: coefficients of a program whose memory this one shares.
    """

    def __init__(self, module: Module, align: int = 16, before: Coefficients | None = None) -> None:
        self.module = module
        self._memory: _Memory = _Memory(align) if before is None else before._memory
        if before is not None:
            self._memory.share()
        self._offsets: dict[Hashable, int] = {}

    @property
    def size(self) -> int:
        """Bytes of the memory, of all programs that share it so far."""
        return self._memory.size

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
        literals = self._memory.literals
        if data not in literals:
            literals[data] = self.add(data)
        return literals[data]

    def once(self, key: Hashable, make: Callable[[], bytes]) -> int:
        """Where the constant lies that `make` gives; it is asked once for each key, as by the tiles of an op."""
        if key not in self._offsets:
            self._offsets[key] = self.constant(make())
        return self._offsets[key]

    def add(self, data: bytes | memoryview) -> int:
        """Offset of bytes, those of a program before where it has the same. They stay as they are until `blob`."""
        known = self._memory.find(data)
        return self._memory.add(data) if known is None else known

    def blob(self) -> bytes:
        """The whole memory, complete when the last program is made; one object for all of them."""
        return self._memory.joined()


def _bytes_of(array: np.ndarray) -> memoryview:
    """The bytes of an array in C order, without a copy where it lies so."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
