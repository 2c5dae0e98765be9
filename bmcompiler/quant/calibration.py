"""Calibration: run the float net on samples, one histogram per tensor, one threshold per histogram.

One step of calibration, as any process can do it: run the float net, count the magnitudes of every tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bmcompiler.errors import CalibrationError
from bmcompiler.files.carried import Carried
from bmcompiler.interpreter import Observer, run_function
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import WEIGHT
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import TensorOp
from bmcompiler.options import Progress
from bmcompiler.parallel.task import InlinePool, NamedTask, Pool
from bmcompiler.quant import histogram
from bmcompiler.quant.data import Checked, batches, check_data
from bmcompiler.quant.histogram import Histogram
from bmcompiler.quant.rebatch import rebatch

if TYPE_CHECKING:
    from bmcompiler.inputs.source import Data


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
    """Results of pad and of what masks by an infinite constant, and what only moves, compares or casts them.

    Padding with infinity steers a maximum that follows, and int8 has a lowest value for it. What masks stays in float.
    """
    found = {op.result for op in function.ops if op.name == WEIGHT and _is_mask(module, op)}
    for op in function.ops:
        keeps = isinstance(op, TensorOp) and (op.selects or op.masks or op.short_name == "cast")
        if op.short_name == "pad" or (keeps and not found.isdisjoint(op.operands)):
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


_SAMPLES_AT_ONCE = 32
# Values of all tensors of one step together; more would leave the caches and, for large nets, the memory.
_VALUES_AT_ONCE = 16 << 20


@dataclass(frozen=True)
class Settings:
    """How thresholds are chosen; see `histogram.threshold`. `bins` is a multiple of 128."""

    method: str = "kl"
    bins: int = 2048
    percentile: float = 99.99


def calibrate(
    module: Module,
    function: Function,
    data: Data,
    settings: Settings | None = None,
    progress: Progress | None = None,
    pool: Pool | None = None,
    watch: Watch | None = None,
) -> dict[Value, float]:
    """Thresholds of all float inputs and op results of `function`, 0 for tensors that were 0 throughout.

    The samples are read once and no tensor is kept. Up to 32 samples run at a time where the net allows it, in the
    processes of `pool` (by default in this one); the thresholds do not depend on it. watch: as `collect` takes it.

    Raises CalibrationError for data that do not fit the inputs, and for tensors with NaN or infinity.
    """
    settings = settings or Settings()
    arrays = check_data(function, data)
    histograms = collect(module, function, arrays, settings.bins, progress, pool, watch)
    return {
        value: histogram.threshold(counts, settings.method, settings.percentile) for value, counts in histograms.items()
    }


def collect(
    module: Module,
    function: Function,
    arrays: Checked,
    bins: int = 2048,
    progress: Progress | None = None,
    pool: Pool | None = None,
    watch: Watch | None = None,
) -> dict[Value, Histogram]:
    """Histograms of all float inputs and op results over checked data (`check_data`); keyed by values of `function`.

    watch: may look at steps besides, where `function` itself runs in this process: not where several samples run at a
    time, and in no process of a pool.
    """
    samples = len(next(iter(arrays.values()))) if arrays else 0
    running = _batched(module, function, arrays, samples)
    whole = Module([running])
    whole.weights = module.weights
    sizes = _batch_sizes(running)
    steps = -(-samples // min(sizes.values(), default=1))
    inputs = (_shaped(running, each) for each in batches(arrays, sizes))
    pool = pool or InlinePool()
    watch = watch if running is function and isinstance(pool, InlinePool) else None
    counted = pool.run(CountMagnitudes(Carried(whole), bins, watch), enumerate(enumerate(inputs)))
    histograms = {value: Histogram(bins) for value in computed_values(function) if value.type.is_float}
    for _, found in counted if progress is None else progress(counted, "calibrating", steps):
        for value, each in zip(computed_values(function), found):
            if each is not None:
                histograms[value].merge(each)
    return histograms


def _batch_sizes(function: Function) -> dict[str, int]:
    return {name: value.shape[0] if value.shape else 1 for name, value in zip(function.input_names, function.arguments)}


def _shaped(function: Function, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs without axes (one number) are stored as vectors of samples."""
    return {n: inputs[n].reshape(v.shape) for n, v in zip(function.input_names, function.arguments)}


def _batched(module: Module, function: Function, arrays: Checked, samples: int) -> Function:
    """`function` for more samples at a time, when a trial with two batches gives the same outputs."""
    sizes = _batch_sizes(function)
    before = next(iter(sizes.values()), 1)
    values = sum(value.type.size for value in computed_values(function))
    batch = min(_SAMPLES_AT_ONCE, samples, max(1, _VALUES_AT_ONCE // max(values, 1)) * before) // before * before
    if batch <= before or len(set(sizes.values())) > 1:  # what counts samples of one input counts layers of another
        return function
    trial, larger = rebatch(function, 2 * before), rebatch(function, batch)
    if trial is None or larger is None:
        return function
    wanted = run_function(module, function, _shaped(function, next(batches(arrays, sizes))))
    found = run_function(module, trial, _shaped(trial, next(batches(arrays, _batch_sizes(trial)))))
    agree = all(_close(found[name][: len(array)], array) for name, array in wanted.items() if array.dtype.kind == "f")
    return larger if agree else function


def _close(found: Array, wanted: Array) -> bool:
    """Equal but for the rounding of sums in another order."""
    peak = float(np.abs(np.nan_to_num(wanted)).max(initial=0.0))
    return bool(np.allclose(found, wanted, rtol=1e-3, atol=1e-5 * peak, equal_nan=True))
