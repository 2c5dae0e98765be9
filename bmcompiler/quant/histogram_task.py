"""One step of calibration, as any process can do it: run the float net, count the magnitudes of every tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.errors import CalibrationError
from bmcompiler.files.carried import Carried
from bmcompiler.interpreter import Observer, run_function
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.ops.base import TensorOp
from bmcompiler.parallel.task import NamedTask
from bmcompiler.quant.histogram import Histogram

Array = NDArray[Any]
Step = tuple[int, Mapping[str, Array]]
"""Its number and inputs."""
Watch = Callable[[int], "Observer | None"]
"""(number of a step) -> who else looks at its values."""


@dataclass(frozen=True)
class CountMagnitudes(NamedTask[Module, Step, list["Histogram | None"]]):
    """A histogram of `bins` bins for every input and result of the main function, None where that is not float."""

    net: Carried
    bins: int
    watch: Watch | None = None

    def load(self) -> Module:
        return self.net.module

    def compute(self, state: Module, part: Step) -> list[Histogram | None]:
        function, (number, inputs) = state.main, part
        other = None if self.watch is None else self.watch(number)
        found = {value: Histogram(self.bins) for value in computed_values(function) if value.type.is_float}
        may_be_infinite = _padded(state, function)

        def observe(value: Value, array: Array) -> None:
            if other is not None:
                other(value, array)
            if value not in found:
                return
            try:
                found[value].add(array[np.isfinite(array)] if value in may_be_infinite else array)
            except ValueError:
                raise _not_finite(function, value) from None

        run_function(state, function, inputs, observe)
        return [found.get(value) for value in computed_values(function)]


def computed_values(function: Function) -> list[Value]:
    """Inputs and results of ops that are no constants, in order."""
    return [*function.arguments, *(r for op in function.ops if op.operands for r in op.results)]


def _padded(module: Module, function: Function) -> set[Value]:
    """Results of pad and of what masks by an infinite constant, and what only moves or compares them.

    Padding with infinity steers a maximum that follows, and int8 has a lowest value for it. What masks stays in float.
    """
    found = {op.result for op in function.ops if op.name == WEIGHT and _is_mask(module, op)}
    for op in function.ops:
        moves = isinstance(op, TensorOp) and (op.selects or op.masks)
        if op.short_name == "pad" or (moves and not found.isdisjoint(op.operands)):
            found.update(op.results)
    return found


def _is_mask(module: Module, weight: Operation) -> bool:
    readers = [user for user, _ in weight.result.uses]
    if not weight.result.type.is_float or not any(isinstance(op, TensorOp) and op.masks for op in readers):
        return False
    return bool(np.isinf(module.weights[weight.attributes["key"]]).any())


def _not_finite(function: Function, value: Value) -> CalibrationError:
    if value.op is None:
        return CalibrationError(f"input '{function.input_names[value.index]}' holds NaN or infinity")
    return CalibrationError(
        "its output is NaN or infinite on the calibration data",
        layer=value.op.label,
        kind=value.op.short_name,
        remedy="check that the data are prepared as the network expects (scaling, mean)",
    )
