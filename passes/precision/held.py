"""Tensors and ops of a net that a 16-bit float type does not hold, each by itself."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bmcompiler.interpreter import evaluate_op, executed
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import is_weight
from bmcompiler.ir.types import numpy_dtype
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp

HOLDS = {"f16": 65504 / 4, "bf16": 3.3895314e38 / 4}
"""Other samples may have larger numbers than those that are seen."""
UNUSUAL_LOSS = {"f16": 1.5 * 2.0**-11, "bf16": 1.5 * 2.0**-8}
"""Three times what rounding takes of the length of a tensor none of whose numbers is too small for the type."""
GROWN = 2.0**-5
"""Of the length of a result, when operands are rounded: sums whose terms cancel; others lose a hundredth of this."""
_NONE = 1e30
"""Magnitudes from which values mean "none": masks of attention hold the lowest float, and any low value will do."""


@dataclass
class _Seen:
    """Of one tensor: its largest magnitude, its energy and that of its rounding."""

    peak: float = 0.0
    signal: float = 0.0
    noise: float = 0.0

    def add(self, array: Array, dtype: str) -> None:
        counted = np.abs(array) < _NONE
        values = np.where(counted, array, 0).astype(np.float64)
        self.peak = max(self.peak, float(np.abs(values).max(initial=0.0)))
        if self.peak <= HOLDS[dtype]:
            self.signal += float(np.square(values).sum())
            self.noise += float(np.square(as_half(values.astype(np.float32), dtype) - values).sum())

    def unfit(self, dtype: str) -> bool:
        return self.peak > HOLDS[dtype] or self.noise > UNUSUAL_LOSS[dtype] ** 2 * self.signal


@dataclass
class Watch:
    """What a type makes of the numbers of a net in float.

    grown: by what rounded operands change the result of an op, as a part of its length; the most of all samples.
    """

    function: Function
    dtype: str
    tensors: dict[Value, _Seen] = field(default_factory=dict)
    grown: dict[Operation, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        module: Module,
        samples: Iterable[Mapping[str, Array]],
        dtype: str,
        among: Container[Operation] | None = None,
    ) -> Watch:
        """The net on samples, each an array for every input; `among`: the ops that are looked at, by default all."""
        found = cls(module.main, dtype)
        for inputs in samples:
            values = dict(zip(module.main.arguments, inputs.values(), strict=True))
            for op, arrays, results in executed(module, module.main, values):
                if among is None or op in among:
                    found._see(op, arrays, results)
        return found

    def _see(self, op: Operation, arrays: Sequence[Array], results: Sequence[Array]) -> None:
        for value, array in (*zip(op.operands, arrays), *zip(op.results, results)):
            if value.type.is_float and value.op in (None, op):
                self.tensors.setdefault(value, _Seen()).add(array, self.dtype)
        if isinstance(op, TensorOp) and op.results[0].type.is_float:
            rounded = evaluate_op(op, [as_half(array, self.dtype) for array in arrays])
            self.grown[op] = max(self.grown.get(op, 0.0), apart(rounded[0], results[0]))

    def unfit(self) -> dict[Operation, bool]:
        """Ops that are not to be computed in the type, in order, and whether that is for what they make."""
        found: dict[Operation, bool] = {}
        for op, grown in self.grown.items():
            if grown > GROWN:
                found = dict.fromkeys(makers(op), False) | found | {op: True}
        for value, seen in self.tensors.items():
            if seen.unfit(self.dtype):
                found |= dict.fromkeys(value.users, value.op is None or is_weight(value))
        found |= {v.op: True for v, seen in self.tensors.items() if v.op is not None and seen.unfit(self.dtype)}
        return {op: found[op] for op in self.function.ops if op in found and _computes(op)}


def makers(op: Operation) -> list[Operation]:
    """What computes the floats that an op reads."""
    return [value.op for value in op.operands if value.op is not None and value.type.is_float and _computes(value.op)]


def _computes(op: Operation) -> bool:
    return isinstance(op, TensorOp) and not is_weight(op.results[0])


def apart(found: Array, real: Array) -> float:
    """Length of what is wrong in a tensor of floats, as a part of its own; zeros and what means "none" do not count."""
    with np.errstate(all="ignore"):
        exact = np.where(np.abs(real) < _NONE, real, 0).astype(np.float64)
        wrong = float(np.square(np.where(exact, found - exact, 0)).sum())
        whole = float(np.square(exact).sum())
    if np.isnan(wrong):
        return float("inf")
    return float(np.sqrt(wrong / whole)) if whole else 0.0


def as_half(array: Array, dtype: str) -> Array:
    """The numbers of a float tensor as a 16-bit type has them, in the tensor's type."""
    if array.dtype.kind != "f":
        return array
    with np.errstate(over="ignore"):
        return np.asarray(array.astype(numpy_dtype(dtype)).astype(array.dtype))
