"""What a choice of modes computes step by step, as any process can do it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from bmcompiler.files.carried import Carried
from bmcompiler.interpreter import Compute, evaluate_op, run_function
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.numeric import quant_modes
from bmcompiler.numeric.arrays import Array, Doubles
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.ops.elements.activation import LogSoftmax, Softmax
from bmcompiler.parallel.task import NamedTask
from bmcompiler.passes.quantization.base import is_constant
from bmcompiler.passes.quantization.choice.clusters import Clusters, looked_at

Inputs = Mapping[str, Array]
Disturbed = tuple[int, Mapping[int, Array]]
"""(step, what is added to the first results of ops, by their place)."""


_WHOLE = 1 << 26
"""Values of outputs that are kept of all steps together."""
BEFORE = " before "
"""Between an output's name and the op whose operand stands for it."""
_PART = 1 << 24
"""Values whose squares are held at a time."""


class FloatRun:
    """The float net on one step at a time, with all values kept."""

    def __init__(self, module: Module, clusters: Clusters, steps: Sequence[Inputs]) -> None:
        self.module, self.function, self.clusters, self.steps = module, module.main, clusters, steps
        self.watched = watched(self.function)
        self._needed = _behind_of(self.watched.values())
        self._step: int | None = None
        self._kept: dict[Value, Array] = {}

    def weigh(self, step: int, errors: Mapping[int, Array]) -> tuple[Doubles, list[float]]:
        """Energies (`Clusters.energies`) of errors in the first results of ops, and the energy of each such result."""
        if step != self._step:
            self._kept.clear()
            run_function(self.module, self.function, self.steps[step], self._kept.__setitem__)
            self._step = step
        exact = {name: looked_at(self._kept[value]) for name, value in self.watched.items()}
        results = [self.function.ops[place].results[0] for place in errors]
        return self.clusters.energies(self._behind(errors), exact), [
            energy([finite(self._kept[value])]) for value in results
        ]

    def _behind(self, errors: Mapping[int, Array]) -> dict[str, Array]:
        """The watched values with errors in the first results of ops; what does not change is not computed."""
        kept, other = self._kept, dict[Value, Array]()
        for place in range(min(errors), len(self.function.ops) - 1):
            op = self.function.ops[place]
            if op in self._needed and any(value in other for value in op.operands):
                arrays = [other[v] if v in other else array_of(self.module, v, kept) for v in op.operands]
                for value, array in zip(op.results, evaluate_op(op, arrays)):
                    if not np.array_equal(array, kept[value]):
                        other[value] = array
            if place in errors and op.results[0].type.is_float:  # bytes that mean themselves have none
                value = op.results[0]
                other[value] = (other.get(value, kept[value]) + errors[place]).astype(np.float32)
        return {name: looked_at(other[v] if v in other else kept[v]) for name, v in self.watched.items()}


@dataclass(frozen=True)
class Weigh(NamedTask[FloatRun, Disturbed, tuple[Doubles, list[float]]]):
    """What errors in results do to the outputs of a float net (`FloatRun.weigh`)."""

    net: Carried
    clusters: Clusters
    steps: Sequence[Inputs]

    def load(self) -> FloatRun:
        """The net, not run yet."""
        return FloatRun(self.net.module, self.clusters, self.steps)

    def compute(self, state: FloatRun, part: Disturbed) -> tuple[Doubles, list[float]]:
        return state.weigh(*part)


@dataclass(frozen=True)
class RunStep(NamedTask[Module, Inputs, list[Array]]):
    """Real values of some results (by their place among `values_of`) of an integer net in one step.

    whole: of which all is asked for, even where they are large.
    """

    net: Carried
    places: Sequence[int]
    whole: Sequence[bool]

    def load(self) -> Module:
        """The net as the process has it already."""
        return self.net.module

    def compute(self, state: Module, part: Inputs) -> list[Array]:
        return self.looked(state, part)

    def looked(self, state: Module, part: Inputs, compute: Compute | None = None) -> list[Array]:
        """The values of one step. compute: what computes ops (`run_function`)."""
        values = values_of(state.main)
        wanted = {values[place]: whole for place, whole in zip(self.places, self.whole)}
        found: dict[Value, Array] = {}

        def observe(value: Value, array: Array) -> None:
            if value in wanted:
                found[value] = real(value, array if wanted[value] else looked_at(array))

        run_function(state, state.main, part, observe, compute=compute)
        return [found[values[place]] for place in self.places]


def values_of(function: Function) -> list[Value]:
    """All values, in order."""
    return [*function.arguments, *(result for op in function.ops for result in op.results)]


def real(value: Value, array: Array) -> Array:
    """The real numbers that the array of a value stands for."""
    quant = value.type.quant
    return array if quant is None else quant_modes.dequantize(array, quant.scale, quant.zero_point)


def finite(array: Array) -> Array:
    """The numbers; infinite ones, which mean "none" (masks, padding of maxima), as 0."""
    return np.where(np.isfinite(array), array, 0)


def energy(arrays: Sequence[Array]) -> float:
    """Sum of squares, of large arrays part by part."""
    parts = (array.reshape(-1)[k : k + _PART] for array in arrays for k in range(0, array.size, _PART))
    return float(sum(np.square(part, dtype=np.float64).sum() for part in parts))


def array_of(module: Module, value: Value, known: Mapping[Value, Array]) -> Array:
    """A computed value, or the weights behind a constant."""
    return module.weights[cast(Weight, value.op).key] if is_constant(value) else known[value]


def watched(function: Function) -> dict[str, Value]:
    """Values whose errors count, by name: the float outputs, or in their place what ops that pick read (y before arg).

    Softmax hides errors of sure answers, its logarithm makes much of them; their operands tell both kinds.
    """
    found: dict[str, Value] = {}

    def watch(name: str, value: Value, before: str = "") -> None:
        op = value.op
        if is_constant(value) or op is None:
            return
        if not value.type.is_float or (
            isinstance(op, TensorOp) and (op.picks or isinstance(op, (Softmax, LogSoftmax)))
        ):
            for operand in op.operands:
                watch(name, operand, op.short_name)
        elif value not in found.values():
            shown = f"{name}{BEFORE}{before}" if before else name
            found[f"{shown} ({len(found)})" if shown in found else shown] = value

    for name, value in zip(function.output_names, function.returned):
        watch(name, value)
    return found


def computed(function: Function) -> dict[str, Value]:
    """The outputs that are no constants, by name."""
    return {n: v for n, v in zip(function.output_names, function.returned) if v.op is not None and not is_constant(v)}


def judged_whole(function: Function, steps: int) -> set[Value]:
    """The outputs of which all is kept, as decisions are told by it; none where they would fill memory."""
    returned = set(computed(function).values())
    return returned if steps * sum(value.type.size for value in returned) <= _WHOLE else set()


def _behind_of(values: Iterable[Value]) -> set[Operation]:
    """All ops that values come from."""
    found: set[Operation] = set()
    left = [value.op for value in values]
    while left:
        op = left.pop()
        if op is not None and op not in found:
            found.add(op)
            left += [value.op for value in op.operands]
    return found
