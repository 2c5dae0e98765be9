"""Matrices in local memory, cut by columns into sections of which each has a lane; common to chips with lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from bmcompiler.numeric.arrays import Array
from bmcompiler.runtime.simulator.memory import Shape


class Stored(Protocol):
    """A tensor in memory."""

    @property
    def shape(self) -> Shape:
        """(n, c, h, w)."""

    def read(self) -> Array:
        """Its elements as (N, C, H, W)."""

    def write(self, values: Array) -> None:
        """Store elements of the same shape."""


class Sections:
    """`rows` x `columns` elements: column j is element j mod `width` of section j div `width`.

    The last section may be partial; elements behind it are not touched.

    Args:
        tensor: gives the tensor of a shape (rows, sections, 1, columns) that begins in the section of that number.
    """

    def __init__(self, tensor: Callable[[Shape, int], Stored], rows: int, columns: int, width: int) -> None:
        whole, rest = divmod(columns, width)
        self._parts: list[tuple[slice, Stored]] = []
        if whole:
            self._parts.append((slice(0, whole * width), tensor((rows, whole, 1, width), 0)))
        if rest:
            self._parts.append((slice(whole * width, columns), tensor((rows, 1, 1, rest), whole)))

    def read(self) -> Array:
        """The matrix, (rows, columns), its sections side by side."""
        blocks = [tensor.read().reshape(tensor.shape[0], -1) for _, tensor in self._parts]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)

    def write(self, matrix: Array) -> None:
        """Store a matrix."""
        for columns, tensor in self._parts:
            tensor.write(matrix[:, columns].reshape(tensor.shape))
