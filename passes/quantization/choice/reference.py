"""The float net on samples: what integers do to each part of it, and what that does to the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bmcompiler.interpreter import evaluate_op, run_function
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.numeric import quant_modes
from bmcompiler.ops.activation import LogSoftmax, Softmax
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.core import Weight
from bmcompiler.passes.quantization.base import is_constant
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.choice.groups import Groups
from bmcompiler.passes.quantization.choice.units import Unit

Array = NDArray[Any]
Inputs = Mapping[str, Array]
Progress = Callable[[Iterable[Any], str, int], Iterator[Any]]
Errors = dict[Unit, list[Array]]
"""What a unit's own integers add to its first result, one array per step."""
_TINY = 1e-30


class Reference:
    """The float net on some steps of samples. All arrays are real values."""

    def __init__(self, module: Module, function: Function, steps: Sequence[Inputs]) -> None:
        self.module, self.function, self.steps = module, function, steps
        self.watched = _watched(function)
        self.outputs = [self._watch(step) for step in steps]
        self.groups = Groups(self.outputs)
        self.energies: dict[Unit, float] = {}
        self._needed = _behind_of(self.watched.values())

    def _watch(self, step: Inputs) -> dict[str, Array]:
        seen: dict[Value, Array] = {}
        wanted = set(self.watched.values())

        def observe(value: Value, array: Array) -> None:
            if value in wanted:
                seen[value] = array

        run_function(self.module, self.function, step, observe)
        return {name: seen[value] for name, value in self.watched.items()}

    def own_errors(self, low: Building[Any], units: Sequence[Unit], steps: Sequence[int]) -> Errors:
        """The difference that the integers of each unit alone make, on what the unit reads in the integer net.

        Rounding of operands counts where a unit reads them in another format than they have. `low`: the integer net.
        """
        found: Errors = {unit: [] for unit in units}
        for k in steps:
            seen = _reals_of(low, self.steps[k], {v for u in units for v in (*u.operands, *u.results)})
            for unit in units:
                exact = self._compute(unit, seen)
                found[unit].append(seen[unit.results[0]] - _within(low, unit, exact))
        return found

    def _compute(self, unit: Unit, values: Mapping[Value, Array]) -> Array:
        """The first result of a unit in float."""
        known = dict(values)
        for op in unit.ops:
            known.update(zip(op.results, evaluate_op(op, [self._array(v, known) for v in op.operands])))
        return known[unit.results[0]]

    def _array(self, value: Value, known: Mapping[Value, Array]) -> Array:
        return self.module.weights[cast(Weight, value.op).key] if is_constant(value) else known[value]

    def consequences(
        self, errors: Errors, steps: Sequence[int], progress: Progress | None = None
    ) -> dict[Unit, NDArray[np.float64]]:
        """What each unit's own error does to each output group: energies as of `Groups.energies`, mean of the steps.

        One run of the float net per step, and for each unit of what comes behind it.
        """
        total = {unit: np.zeros(len(self.groups.groups)) for unit in errors}
        work = [(number, unit) for number in range(len(steps)) for unit in errors]
        kept: dict[Value, Array] = {}
        for number, unit in work if progress is None else progress(work, "weighing layers", len(work)):
            k = steps[number]
            if unit is next(iter(errors)):
                run_function(self.module, self.function, self.steps[k], kept.__setitem__)
            outputs = self._behind(unit, kept[unit.results[0]] + errors[unit][number], kept)
            total[unit] += self.groups.energies(outputs, self.outputs[k]) / len(steps)
            self.energies[unit] = energy([kept[unit.results[0]]])
        return total

    def energy_of(self, unit: Unit, steps: Sequence[int]) -> float:
        """Energy of the first result of a unit, about, over some steps; known once its consequences are."""
        return self.energies[unit] * len(steps)

    def _behind(self, unit: Unit, changed: Array, kept: Mapping[Value, Array]) -> dict[str, Array]:
        """The outputs when the first result of a unit is another one."""
        other: dict[Value, Array] = {unit.results[0]: changed.astype(np.float32)}
        for op in self.function.ops[self.function.ops.index(unit.ops[-1]) + 1 : -1]:
            if op in self._needed and any(value in other for value in op.operands):
                arrays = [other[v] if v in other else self._array(v, kept) for v in op.operands]
                for value, array in zip(op.results, evaluate_op(op, arrays)):
                    if not np.array_equal(array, kept[value]):
                        other[value] = array
        return {name: other[v] if v in other else kept[v] for name, v in self.watched.items()}

    def output_errors(self, low: Building[Any], steps: Sequence[int]) -> NDArray[np.float64]:
        """Energies of the errors of an integer net in each output group, mean of the steps."""
        total = np.zeros(len(self.groups.groups))
        for k in steps:
            seen = _reals_of(low, self.steps[k], set(self.watched.values()))
            found = {name: seen.get(value, self.outputs[k][name]) for name, value in self.watched.items()}
            total += self.groups.energies(found, self.outputs[k]) / len(steps)
        return total


def energy(arrays: Sequence[Array]) -> float:
    """Sum of squares."""
    return float(sum(np.square(array, dtype=np.float64).sum() for array in arrays))


def _watched(function: Function) -> dict[str, Value]:
    """Values whose errors count, by name: the float outputs, or in their place what ops that pick read.

    Softmax hides errors of sure answers, its logarithm makes much of them; their operands tell both kinds.
    """
    found: dict[str, Value] = {}

    def watch(name: str, value: Value) -> None:
        op = value.op
        if is_constant(value) or op is None:
            return
        if not value.type.is_float or (
            isinstance(op, TensorOp) and (op.picks or isinstance(op, (Softmax, LogSoftmax)))
        ):
            for k, operand in enumerate(op.operands):
                watch(f"{name}<{k}", operand)
        elif value not in found.values():
            found[name] = value

    for name, value in zip(function.output_names, function.returned):
        watch(name, value)
    return found


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


def _reals_of(low: Building[Any], inputs: Inputs, wanted: set[Value]) -> dict[Value, Array]:
    """Values of the old function as the new one computes them."""
    news: dict[Value, list[Value]] = {}
    for value in wanted:
        new = low.ints.get(value) or low.reals.get(value)
        if new is not None:
            news.setdefault(new, []).append(value)
    found: dict[Value, Array] = {}

    def observe(value: Value, array: Array) -> None:
        for old in news.get(value, ()):
            found[old] = real(value, array)

    fed = {
        name: array if v.type.quant is None else low.integers(array, low.format_of(v))
        for (name, array), v in zip(inputs.items(), low.new.arguments)
    }
    run_function(low.module, low.new, fed, observe)
    return found


def real(value: Value, array: Array) -> Array:
    """The real numbers that the array of a value stands for."""
    quant = value.type.quant
    return array if quant is None else quant_modes.dequantize(array, quant.scale, quant.zero_point)


def _within(low: Building[Any], unit: Unit, exact: Array) -> Array:
    """A float result as far as the integer form has to make it: bounds of an activation behind it saturate here."""
    value = unit.results[0]
    new = low.ints.get(value)
    users: list[Operation] = value.users
    if new is None or len(users) != 1 or not (users[0].short_name == "relu" or users[0] in low.plan.saturating):
        return exact
    limits = np.iinfo(new.type.numpy)
    return np.clip(exact, *(real(new, np.array([bound])) for bound in (limits.min, limits.max)))
