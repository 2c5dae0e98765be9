"""Which bytes a program has to move and which it moves more often than that. Knows no chip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bmcompiler.numeric.arrays import Ints, Mask

Range = tuple[int, int]
"""First address and bytes of an input or output of the net."""


@dataclass(frozen=True)
class NetMemory:
    """Where inputs and outputs of a net lie in global memory, and the bytes of its coefficients."""

    inputs: tuple[Range, ...] = ()
    outputs: tuple[Range, ...] = ()
    coefficients: int = 0


@dataclass(frozen=True)
class Transfers:
    """(n,) arrays over all records: bytes read from and written to global memory, and where.

    `coefficient` says which reads are of coefficients, whose addresses may be others than those of activations.
    """

    source: Ints
    read: Ints
    target: Ints
    written: Ints
    coefficient: Mask


def compulsory(moved: Transfers, net: NetMemory) -> tuple[Ints, Ints]:
    """(bytes of the net's inputs and outputs, bytes that have to be moved) of every record.

    Coefficients, inputs and outputs have to be moved once; the first record that moves an address counts. They count no
    more than they have: tiles that overlap share what there is.
    """
    loads = _within(moved.source, net.inputs) & ~moved.coefficient
    stores = _within(moved.target, net.outputs)
    features = moved.read * loads + moved.written * stores
    once = _first(moved.source, moved.read * moved.coefficient, net.coefficients)
    once += _first(moved.source, moved.read * loads, sum(size for _, size in net.inputs))
    return features, once + _first(moved.target, moved.written * stores, sum(size for _, size in net.outputs))


def _within(address: Ints, ranges: Iterable[Range]) -> Mask:
    found = np.zeros(len(address), np.bool_)
    for first, size in ranges:
        found |= (address >= first) & (address < first + size)
    return found


def _first(address: Ints, nbytes: Ints, most: int) -> Ints:
    """Bytes of the records that are the first ones at their address, scaled down when they are more than `most`."""
    result = np.zeros_like(nbytes)
    moving = np.flatnonzero(nbytes)
    _, first, index = np.unique(address[moving], return_index=True, return_inverse=True)
    largest = np.zeros(len(first), np.int64)
    np.maximum.at(largest, index, nbytes[moving])
    result[moving[first]] = largest
    total = int(result.sum())
    return result if total <= most else (result * (most / total)).astype(np.int64)
