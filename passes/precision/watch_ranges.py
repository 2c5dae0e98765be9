"""Which numbers of a float net 16 bits do not hold, seen on samples before any are rounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bmcompiler.conditions import NO_LAYOUT, ONE_FLOAT, SOURCE_TYPES
from bmcompiler.errors import RuntimeUseError
from bmcompiler.ir import Module, Operation
from bmcompiler.ir.keys import HALF, WIDE, is_weight
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.passes.precision.half_run import HalfRun
from bmcompiler.passes.precision.held import Watch
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.proof.sample import samples_of
from bmcompiler.spelling import spelled

_OTHER = {"f16": "bf16", "bf16": "f16"}
_SHOWN = 3
_LEVELS = 8
"""How far back from a result that is lost what it is computed from is kept."""
_SAME = 1.1
"""How many times the error that is left anyway another type may leave."""
_QUICK = 1 << 30
"""Products and elements of nets that are run on drawn inputs, where there are no samples."""
_ROUNDED = 16
"""Products that take as long as a weight that is rounded."""


@dataclass(frozen=True)
class WatchRanges(Pass):
    """Note which ops a 16-bit float type does not hold, and whether the other one does; they are f32 without that.

    1. a tensor with magnitudes beyond a quarter of the type's largest number         : its maker and its readers
    2. one that rounding changes by three times what it usually does, for it is tiny  : the same
    3. an op whose result changes by 2^-5 when its operands are rounded to the type   : it, and what makes them
    4. one whose result is lost in the net as rounded, but for what 1 to 3 keep       : it, and step by step what is
       before it, until its result is not lost, as where sums end that had swallowed what counts
    5. of all these, what the other type holds by 1 to 3                              : that type, as many of them as
       leave the outputs within `max_error` percent of float, those first that lose least

    The net runs in float on up to `samples` of the data. Without data small nets run on drawn inputs, and so does
    everything where the chip has no other type (not `keeps`): what is found is named, and nothing is noted.
    """

    name = "watch-ranges"
    requires = (SOURCE_TYPES, ONE_FLOAT, NO_LAYOUT)
    loses_bits = False
    dtype: str = "f16"
    samples: int = 2
    max_error: float = 0.5
    keeps: bool = True

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        main = module.main
        if ctx.data is None and _work(module) > _QUICK:
            return PassResult(False)
        steps, of_data = samples_of(main, ctx.data, self.samples)
        if not of_data:
            steps = [{name: np.abs(array) for name, array in steps[0].items()}]  # pixels and their sums are not below 0
        if ctx.data is not None and not of_data:  # a further program of a file, of other shapes than the data
            return PassResult(False)
        try:
            unfit = Watch.of(module, steps, self.dtype).unfit()
        except RuntimeUseError:  # drawn numbers are none that the net takes, as places outside of a plane
            if of_data:
                raise
            return PassResult(False)
        if not of_data or not self.keeps:
            if unfit:
                ctx.notes.append(self._named(unfit, of_data))
            return PassResult(False)
        plain = HalfRun(module, self.dtype, unfit)
        plain.keep(_LEVELS, steps[0])
        found = plain.kept
        others = self._others(module, steps, plain, found)
        for op in found:
            op.attributes |= {HALF: _OTHER[self.dtype]} if op in others else {WIDE: True}
        if found:
            ctx.notes.append(self._said(found, others))
        return PassResult(bool(found))

    def _others(
        self, module: Module, steps: list[dict[str, Array]], plain: HalfRun, found: Mapping[Operation, bool]
    ) -> dict[Operation, None]:
        """Rule 5."""
        if not found:
            return {}
        other = _OTHER[self.dtype]
        watch = Watch.of(module, steps, other, found)
        lost = watch.unfit()
        left = sorted((op for op in found if op not in lost), key=lambda op: watch.grown.get(op, 0.0))
        if not any(isinstance(op, TensorOp) and op.affine for op in left):
            return {}  # other ops follow sums of products
        allowed = max(self.max_error / 100, _SAME * plain.error(steps[0]))
        while left:
            if HalfRun(module, self.dtype, found, dict.fromkeys(left, other)).error(steps[0]) <= allowed:
                break
            left = left[: len(left) // 2]
        return dict.fromkeys(left)

    def _said(self, found: Mapping[Operation, bool], others: Mapping[Operation, None]) -> str:
        types = f"{_OTHER[self.dtype]} where that holds them and is quicker, else in f32" if others else "f32"
        return f"{self.dtype} does not hold the numbers of {_shown(found)}: there the net is computed in {types}"

    def _named(self, unfit: Mapping[Operation, bool], of_data: bool) -> str:
        if of_data:
            return (
                f"{self.dtype} does not hold the numbers of {_shown(unfit)} on the samples, and the chip has no other "
                "floats. Remedy: scale the weights before these layers"
            )
        more = f"; with samples ({spelled('data')}) such layers are kept from it" if self.keeps else ""
        return f"{self.dtype} may not hold the numbers of {_shown(unfit)}, by inputs that were drawn{more}"


def _shown(ops: Mapping[Operation, bool]) -> str:
    names = list(dict.fromkeys(op.label for op, makes in ops.items() if makes))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"'{name}'" for name in names[:_SHOWN]) + more


def _work(module: Module) -> int:
    ops = [op for op in module.main.ops if isinstance(op, TensorOp)]
    computed = sum(op.products() + op.results[0].type.size for op in ops)
    return computed + _ROUNDED * sum(op.results[0].type.size for op in ops if is_weight(op.results[0]))
