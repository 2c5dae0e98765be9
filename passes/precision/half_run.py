"""A float net as 16-bit types make it: how far its results are from those of float, and where they are lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from bmcompiler.interpreter import evaluate_op, executed
from bmcompiler.ir import Module, Operation, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.precision.held import GROWN, apart, as_half, makers

_JUMP = 4.0
"""How many times the error of what it reads that of a result is which is lost there."""


@dataclass
class HalfRun:
    """Ops read and give numbers rounded to `dtype`; those that are `kept` do not, those in `others` to another type."""

    module: Module
    dtype: str
    kept: Mapping[Operation, bool] = field(default_factory=dict)
    others: Mapping[Operation, str] = field(default_factory=dict)

    def keep(self, levels: int, inputs: Mapping[str, Array]) -> None:
        """Keep what is before results that are lost with what is kept so far, up to so many steps back, too."""
        for _ in range(levels):
            lost = self._lost(inputs)
            more = {each: False for op in lost for each in self._before(op)}
            if not more:
                break
            self.kept = more | dict(self.kept) | dict.fromkeys(lost, True)
        self.kept = {op: self.kept[op] for op in self.module.main.ops if op in self.kept}

    def error(self, inputs: Mapping[str, Array]) -> float:
        """How far the worst output is from float, as a part of its length."""
        returned, worst = set(self.module.main.returned), 0.0
        for op, errors in self._errors(inputs):
            worst = max(worst, *(errors[v] for v in op.results if v in returned), 0.0)
        return worst

    def _lost(self, inputs: Mapping[str, Array]) -> list[Operation]:
        found: list[Operation] = []
        for op, errors in self._errors(inputs):
            read = max((errors.get(value, 0.0) for value in op.operands), default=0.0)
            if max(errors[value] for value in op.results) > max(GROWN, _JUMP * read):
                found.append(op)
        return found

    def _before(self, op: Operation) -> list[Operation]:
        """The op, or the nearest before it, that are not kept yet."""
        level, seen = [op], {op}
        while level:
            fresh = [each for each in level if each not in self.kept]
            if fresh:
                return fresh
            level = [each for found in level for each in makers(found) if each not in seen]
            seen |= set(level)
        return []

    def _rounding(self, op: TensorOp, read: Sequence[Array]) -> Callable[[Array], Array]:
        """What an op makes of numbers that it reads and gives; constants beyond a type keep it from that."""
        dtype = self.others.get(op, None if op in self.kept else self.dtype)
        if dtype is None:
            return lambda array: array
        constants = [array for value, array in zip(op.operands, read) if is_weight(value) and array.dtype.kind == "f"]
        if any(np.isinf(as_half(array, dtype)).any() and np.isfinite(array).all() for array in constants):
            return lambda array: array
        return partial(as_half, dtype=dtype)

    def _errors(self, inputs: Mapping[str, Array]) -> Iterator[tuple[TensorOp, dict[Value, float]]]:
        """Ops that give floats, and the errors of what is computed so far; what is no float is as in the float net."""
        main = self.module.main
        twins: dict[Value, Array] = {}
        errors: dict[Value, float] = {}
        remaining = {value: len(value.uses) for op in main.ops for value in op.results}
        values = dict(zip(main.arguments, inputs.values(), strict=True))
        for op, arrays, results in executed(self.module, main, values):
            if not isinstance(op, TensorOp) or is_weight(op.results[0]) or not op.results[0].type.is_float:
                continue
            read = [twins.get(value, array) for value, array in zip(op.operands, arrays)]
            rounds = self._rounding(op, read)
            computed = evaluate_op(op, [rounds(array) for array in read])
            for value, array, real in zip(op.results, computed, results):
                twins[value] = rounds(array)
                errors[value] = apart(twins[value], real)
            yield op, errors
            for value in op.operands:
                if value in twins:
                    remaining[value] -= 1
                    if not remaining[value]:
                        del twins[value]
