"""The sort engine: the first K of a sort of numbers in global memory or L2, and where they came from.

Recorded of the vendor's C model, bit for bit. What a chip does with NaN, with zeros of both signs and with denormals,
which count as zero, is not known; in the model it follows from how it sorts, where equal numbers are exchanged, too:

with indices     every pair that is not in order is exchanged, and at the end the indices of neighbours with the same
                 bits are sorted, as unsigned numbers. So equal numbers keep their order, and NaN its place.
without indices  a heap of the first K of them takes in the others, and is emptied.
"""

from __future__ import annotations

import numpy as np

from bmcompiler.backends.bm1684x.codes import Sort
from bmcompiler.backends.bm1684x.isa import ADDRESS_LOW
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Fields
from bmcompiler.numeric import fp32
from bmcompiler.numeric.arrays import Array, Doubles, Ints
from bmcompiler.runtime.simulator.bm1684x.memories import Memories
from bmcompiler.runtime.simulator.memory import Tensor
from bmcompiler.runtime.simulator.plan import Step
from bmcompiler.runtime.simulator.relocation import Relocation

_WORD = 4
_TYPES = {Sort.FP32: np.dtype(np.float32), Sort.INT32: np.dtype(np.int32), Sort.UINT32: np.dtype(np.uint32)}


class SortCommand:
    """A command: its tensors in the memories of a chip."""

    def __init__(self, memories: Memories, fields: Fields, relocation: Relocation) -> None:
        self.memories, self.fields, self.relocation = memories, fields, relocation

    def tensor(self, name: str, count: int) -> Tensor:
        """`count` words at the address `name`. Raises SimulatorError when they are not aligned, or leave memory."""
        f = self.fields
        address = self.relocation(f[f"{name}_addr_lo"] | f[f"{name}_addr_hi"] << ADDRESS_LOW, name.startswith("dst"))
        if address % _WORD:
            raise SimulatorError(f"address 0x{address:x} of {name} is not a multiple of {_WORD} bytes")
        return self.memories.globals.tensor(address, (1, 1, 1, count), (0, 0, 0, _WORD), np.dtype(np.uint32))


def sort_step(command: SortCommand) -> Step:
    """Step of a sort. Raises SimulatorError for types that do not exist, sizes and addresses it cannot have."""
    f = command.fields
    length, kept = f["len"], f["topk"]
    if f["kind"] not in list(Sort):
        raise SimulatorError(f"numbers of kind {f['kind']} are not sorted, only {', '.join(k.name for k in Sort)}")
    if not 1 <= kept <= length:
        raise SimulatorError(f"the first {kept} of {length} numbers do not exist")
    kind, descended, indexed = _TYPES[Sort(f["kind"])], bool(f["descended"]), f["index_en"]
    source, given = command.tensor("src", length), None
    if indexed and not f["natural"]:
        given = command.tensor("src_index", length)
    result = command.tensor("dst", kept)
    places = command.tensor("dst_index", kept) if indexed else None

    def step() -> None:
        bits = source.read().reshape(-1).astype(np.uint32)
        old = np.arange(length) if given is None else given.read().reshape(-1).astype(np.int64)
        keys, plain = _keys(bits.view(kind), descended=descended)
        if places is None:
            found = np.argsort(keys, kind="stable") if plain else _from_heap(keys, kept)
        else:
            found = np.argsort(keys, kind="stable") if plain else _around_nan(keys)
            run = np.cumsum(np.append(False, bits[found][1:] != bits[found][:-1]))
            index = old[found][np.lexsort((old[found], run))]
            places.write(index[:kept].astype(np.uint32).reshape(1, 1, 1, -1))
        result.write(bits[found[:kept]].reshape(1, 1, 1, -1))

    return step


def _keys(values: Array, *, descended: bool) -> tuple[Doubles, bool]:
    """Numbers by which values are in ascending order, and whether equal ones have the same bits and none is NaN."""
    keys = (fp32.flush(values) if values.dtype.kind == "f" else values).astype(np.float64) * (-1 if descended else 1)
    zeros = values.view(np.uint32)[keys == 0]
    return keys, not (np.isnan(keys).any() or (zeros != zeros[:1]).any())


def _around_nan(keys: Doubles) -> Ints:
    """The order after exchanges, in which NaN stays where it is."""
    found, ordered = np.arange(len(keys)), np.flatnonzero(~np.isnan(keys))
    found[ordered] = ordered[_exchanged(keys[ordered])]
    return found


def _exchanged(keys: Doubles) -> Ints:
    """The order after every pair in turn was exchanged whose first number is not below the second.

    The numbers that take the first place in turn move on by one of their places.
    """
    keys, order = keys.copy(), np.arange(len(keys))
    for first in range(len(keys) - 1):
        rest = keys[first:]
        later = np.flatnonzero(rest[1:] <= np.minimum.accumulate(rest)[:-1]) + 1
        if len(later):
            turn = first + np.append(0, later)
            before = np.roll(turn, 1)
            keys[turn], order[turn] = keys[before], order[before]
    return order


def _from_heap(keys: Doubles, kept: int) -> Ints:
    """The first `kept` by a heap that has the last of them on top; a number enters that is not behind it."""
    number = keys.tolist()
    heap = list(range(kept))
    for top in range(kept // 2 - 1, -1, -1):
        _sink(heap, top, kept, heap[top], number)
    for one in range(kept, len(number)):
        if number[one] <= number[heap[0]]:
            _sink(heap, 0, kept, one, number)
    for size in range(kept - 1, 0, -1):
        last, heap[size] = heap[size], heap[0]
        _sink(heap, 0, size, last, number)
    return np.array(heap, np.int64)


def _sink(heap: list[int], top: int, size: int, one: int, number: list[float]) -> None:
    """Put `one` in the place of `top`: the hole goes down to a leaf by the later child, then up to where `one` fits."""
    hole = top
    while (child := 2 * hole + 2) < size:
        child -= number[heap[child]] <= number[heap[child - 1]]
        heap[hole] = heap[child]
        hole = child
    if child == size:
        heap[hole] = heap[child - 1]
        hole = child - 1
    while hole > top and number[heap[(hole - 1) // 2]] <= number[one]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = one
