"""Results of ops of integer nets: what nets that differ in some layers compute alike is computed once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any
from weakref import WeakKeyDictionary

from bmcompiler.interpreter import Compute, evaluate_op
from bmcompiler.ir import Operation, Value
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.numeric.arrays import Array
from bmcompiler.passes.quantization.building import Building

_BYTES = 96 << 20
"""Of all results that are kept. Those that were not asked for longest go first."""
_PART = 8
"""A result of more than this part of them is not kept."""


class Remembered:
    """Computes ops of integer nets of one function on steps of samples, each that is new.

    Two ops are the same where they have the same attributes and types and read the same, back to the weights, which
    are told by what array they are: nets share the integers of layers.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._nets: WeakKeyDictionary[Building[Any], dict[Operation, int]] = WeakKeyDictionary()
        self._weights: dict[int, Array] = {}
        self._kept: dict[tuple[int, int], tuple[Array, ...]] = {}
        self._bytes = 0

    def computing(self, low: Building[Any], step: int) -> Compute:
        """What computes the ops of a net in a step, for `run_function`."""
        if low not in self._nets:
            self._nets[low] = self._numbered(low)
        numbers = self._nets[low]

        def compute(op: Operation, arrays: list[Array]) -> tuple[Array, ...]:
            key = step, numbers[op]
            known = self._kept.pop(key, None)
            if known is not None:
                self._kept[key] = known
                return known
            results = evaluate_op(op, arrays)
            self._keep(key, results)
            return results

        return compute

    def forget(self) -> None:
        """Let go of all arrays, and of what nets were told by them."""
        for each in (self._numbers, self._nets, self._weights, self._kept):
            each.clear()
        self._bytes = 0

    def _numbered(self, low: Building[Any]) -> dict[Operation, int]:
        """A number for each op, the same for those that compute the same of a step."""
        function = low.new
        values: dict[Value, Hashable] = {v: (name, v.type) for name, v in zip(function.input_names, function.arguments)}
        numbers: dict[Operation, int] = {}
        for op in function.ops[:-1]:
            if op.name == WEIGHT:
                array = low.module.weights[op.attributes["key"]]
                self._weights[id(array)] = array
                values[op.result] = id(array)
                continue
            types = tuple(value.type for value in (*op.operands, *op.results))
            said = tuple(sorted((name, value) for name, value in op.attributes.items() if "." not in name))
            read = tuple(values[value] for value in op.operands)
            numbers[op] = self._numbers.setdefault((op.name, said, types, read), len(self._numbers))
            values |= {result: (numbers[op], result.index) for result in op.results}
        return numbers

    def _keep(self, key: tuple[int, int], results: tuple[Array, ...]) -> None:
        size = _size(results)
        if size > _BYTES // _PART:
            return
        self._kept[key] = results
        self._bytes += size
        while self._bytes > _BYTES:
            self._bytes -= _size(self._kept.pop(next(iter(self._kept))))


def _size(results: tuple[Array, ...]) -> int:
    """Bytes that results hold, with those that they are a view of."""
    return sum(array.nbytes if array.base is None else max(array.nbytes, array.base.nbytes) for array in results)
