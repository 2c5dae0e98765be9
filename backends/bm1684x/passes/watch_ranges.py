"""Which numbers of a float net 16 bits do not hold, seen on samples before any are rounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bmcompiler.conditions import NO_LAYOUT, ONE_FLOAT, SOURCE_TYPES
from bmcompiler.interpreter import evaluate_op, executed
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import LARGE, WIDE
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.precision.half_precision import UNUSUAL_LOSS
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.proof.sample import samples_of

_HOLDS = 65504 / 4
"""Other samples may have larger numbers than those that are seen."""
_NONE = 1e30
"""Magnitudes from which values mean "none": masks of attention hold the lowest float, and any low value will do."""
_GROWN = 2.0**-5
"""Of the length of a result, when operands are rounded: sums whose terms cancel; others lose a hundredth of this."""
_SHOWN = 3


@dataclass(frozen=True)
class WatchRanges(Pass):
    """Note on the makers of tensors that f16 does not hold, so that they and their readers stay f32.

    1. a tensor with magnitudes beyond a quarter of f16's largest number           : noted
    2. one that rounding to f16 changes by more than 1.5 * 2^-11, for it is tiny : noted
    3. operands of an op whose result changes by 2^-5 when they are rounded to f16 : noted

    The net runs in float on up to `samples` of the data; without data nothing is known, and nothing is noted. Readers
    of an input that is such a tensor stay f32 by themselves.
    """

    name = "watch-ranges"
    requires = (SOURCE_TYPES, ONE_FLOAT, NO_LAYOUT)
    loses_bits = False
    samples: int = 2

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        if ctx.data is None:
            return PassResult(False)
        steps, of_data = samples_of(module.main, ctx.data, self.samples)
        if not of_data:  # a further program of a file, of other shapes than the data
            return PassResult(False)
        watch = _Watch(module.main)
        for inputs in steps:
            values = dict(zip(module.main.arguments, inputs.values(), strict=True))
            for op, arrays, results in executed(module, module.main, values):
                watch.see(op, arrays, results)
        marked = watch.mark()
        if marked:
            shown = ", ".join(f"'{name}'" for name in marked[:_SHOWN])
            more = f" and {len(marked) - _SHOWN} more" if len(marked) > _SHOWN else ""
            ctx.notes.append(f"f16 does not hold the numbers of {shown}{more}: there the net is computed in f32")
        return PassResult(bool(marked))


@dataclass
class _Seen:
    """Of one tensor: its largest magnitude, its energy and that of its rounding."""

    peak: float = 0.0
    signal: float = 0.0
    noise: float = 0.0

    def add(self, array: Array) -> None:
        counted = np.abs(array) < _NONE
        values = np.where(counted, array, 0).astype(np.float64)
        self.peak = max(self.peak, float(np.abs(values).max(initial=0.0)))
        if self.peak <= _HOLDS:
            self.signal += float(np.square(values).sum())
            self.noise += float(np.square(_as_f16(values) - values).sum())

    @property
    def unfit(self) -> bool:
        """Rules 1 and 2."""
        return self.peak > _HOLDS or self.noise > UNUSUAL_LOSS**2 * self.signal


@dataclass
class _Watch:
    function: Function
    tensors: dict[Value, _Seen] = field(default_factory=dict)
    cancelling: dict[Operation, None] = field(default_factory=dict)

    def see(self, op: Operation, arrays: Sequence[Array], results: Sequence[Array]) -> None:
        """One op on one sample."""
        rounded = [_as_f16(array) for array in arrays]
        for value, array in (*zip(op.operands, arrays), *zip(op.results, results)):
            if value.type.is_float and (value.op in (None, op)):
                self.tensors.setdefault(value, _Seen()).add(array)
        if not isinstance(op, TensorOp) or not op.results[0].type.is_float:
            return
        with np.errstate(all="ignore"):
            real = np.where(np.abs(results[0]) < _NONE, results[0], 0).astype(np.float64)
            apart = np.where(real, evaluate_op(op, rounded)[0] - real, 0)
            if float(np.square(apart).sum()) > _GROWN**2 * float(np.square(real).sum()):
                self.cancelling[op] = None

    def mark(self) -> list[str]:
        """Layers that have a note now; rule 3."""
        found = {value: seen.peak for value, seen in self.tensors.items() if seen.unfit}
        found |= {v: self.tensors[v].peak for op in self.cancelling for v in op.operands if v in self.tensors}
        marked: dict[str, None] = {}
        for value, peak in found.items():
            for op in value.users if value.op is None else (value.op,):
                if isinstance(op, TensorOp):
                    op.attributes |= {WIDE: True} if value.op is None else {LARGE: peak}
                    marked[op.label] = None
        return list(marked)


def _as_f16(array: Array) -> Array:
    """The numbers of a float tensor as f16 has them, in the tensor's type."""
    if array.dtype.kind != "f":
        return array
    with np.errstate(over="ignore"):
        return np.asarray(array.astype(np.float16).astype(array.dtype))
