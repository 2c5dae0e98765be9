"""Thresholds for every float tensor, from calibration data or from a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bmcompiler.conditions import NO_LAYOUT, NO_THRESHOLDS, ONE_FLOAT, SOURCE_TYPES, THRESHOLDS
from bmcompiler.errors import CalibrationError, UsageError
from bmcompiler.ir import Function, Module, Operation, Value
from bmcompiler.ir.keys import INPUT_THRESHOLDS, TENSOR_NAME, THRESHOLD, THRESHOLD_SOURCE, is_weight
from bmcompiler.ops.base import TensorOp
from bmcompiler.options import METHODS
from bmcompiler.passes.importing.absorb_qdq import stated
from bmcompiler.passes.quantization.state import calibration_of
from bmcompiler.passmanager import Pass, PassContext, PassResult
from bmcompiler.quant.histogram import LEVELS
from bmcompiler.spelling import spelled
from bmcompiler.text import has_versions, without_types, without_version

if TYPE_CHECKING:
    from bmcompiler.passes.quantization.look import Look
    from bmcompiler.quant.data import Checked
    from bmcompiler.quant.table import CalibrationTable

AUTO = "auto"
MEANS = 32
"""Samples that rounding and corrections of biases are measured and judged on: means of fewer are mostly chance."""
_HARMLESS = 1.0


@dataclass(frozen=True)
class Calibrate(Pass):
    """Give every float tensor its threshold: the real magnitude that maps to 128.

    1. With a calibration table in the context, its thresholds count; they are found by tensor name, then by layer name,
       then by NAME_TYPE, as tables of tpu-mlir have it, or by NAME where the net has NAME_1, of Caffe2's exporter.
       A tensor that the table lacks takes the threshold of the relu that alone reads it, of its own input when the op
       cannot enlarge values, or the fixed range of the op; one between the ops of a layer that was taken apart follows
       from the tensor the layer ends in. Otherwise the table is incomplete.
    2. Otherwise the net runs on the calibration data of the context, and `method` chooses from each histogram.
       They become the table of the context, which serves the same net in other input shapes.
    3. Thresholds that the model states (`absorb-qdq`) stand over measured ones, and where there is neither table nor
       data they are the table.
    4. A tensor that was always 0 gets the threshold 1.
    5. With method = auto the thresholds of all methods are kept for quantize to choose from; meanwhile
       they are those of mse. What leaves the net, or enters a sigmoid or softmax, is then never clipped: there the few
       large values are what counts.
    6. What quantize measures in the float net is noted on the way.
    """

    name = "calibrate"
    requires = (SOURCE_TYPES, ONE_FLOAT, NO_LAYOUT)
    ensures = (THRESHOLDS,)
    breaks = (NO_THRESHOLDS,)
    loses_bits = False
    method: str = field(default="kl", metadata={"choices": (*METHODS, AUTO)})
    bins: int = 2048
    percentile: float = 99.99

    def __post_init__(self) -> None:
        if self.bins < LEVELS or self.bins % LEVELS or self.bins > 1 << 22:
            raise UsageError(f"pass {self.name}: bins must be a multiple of {LEVELS} up to {1 << 22}, got {self.bins}")
        if not 50 <= self.percentile <= 100:
            raise UsageError(f"pass {self.name}: percentile must be 50 to 100, got {self.percentile}")

    def run(self, module: Module, ctx: PassContext) -> PassResult:
        before = [_stored(function) for function in module.functions]
        for function in module.functions:
            named: set[Value] = set()
            if ctx.table is not None:
                lookup = _Lookup(function, stated(function) | _by_name(ctx.table.thresholds))
                found = lookup.all()
                named = lookup.found_by_name if calibration_of(ctx).was_given(ctx.table) else set()
            elif ctx.data is not None:
                found = self._measure(module, function, ctx) | _stated(function)
            elif stated(function):
                found = _Lookup(function, stated(function)).all()
            else:
                raise CalibrationError(
                    "int8 needs to know the range of every tensor, and there are neither calibration data nor a table",
                    remedy=f"pass {spelled('data')} with real samples, or {spelled('table')}",
                )
            _store(function, found)
            _mark_source(function, named)
        if ctx.table is None:
            ctx.table = calibration_of(ctx).measured = make_table(module)
        return PassResult(before != [_stored(function) for function in module.functions])

    def _measure(self, module: Module, function: Function, ctx: PassContext) -> dict[Value, float]:
        from bmcompiler.passes.quantization.choice.decide import steps_to_measure
        from bmcompiler.passes.quantization.look import Look
        from bmcompiler.quant.calibration import Settings, calibrate
        from bmcompiler.quant.data import check_data

        arrays = check_data(function, ctx.data or {})
        look = Look(function, steps_to_measure(function, ctx, MEANS))  # rule 6
        if self.method == AUTO:
            found = self._measure_all(module, function, arrays, ctx, look)
        else:
            settings = Settings(self.method, self.bins, self.percentile)
            found = calibrate(module, function, ctx.data or {}, settings, ctx.progress, ctx.pool, look.observer)
        if look.complete:
            calibration_of(ctx).look = look
        return found

    def _measure_all(
        self, module: Module, function: Function, arrays: Checked, ctx: PassContext, look: Look
    ) -> dict[Value, float]:
        """Rule 5."""
        from bmcompiler.quant.calibration import collect
        from bmcompiler.quant.histogram import threshold

        histograms = collect(module, function, arrays, self.bins, ctx.progress, ctx.pool, look.observer)
        whole = never_clipped(function)
        found = {
            method: {
                value: threshold(counts, "max" if value in whole else method, self.percentile)
                for value, counts in histograms.items()
            }
            for method in METHODS
        }
        values = float_values(function)
        calibration_of(ctx).candidates = {method: [by[value] for value in values] for method, by in found.items()}
        return found["mse"]


def float_values(function: Function) -> list[Value]:
    """The values that have thresholds, in order."""
    results = (result for op in _computing(function) for result in op.results)
    return [value for value in (*function.arguments, *results) if value.type.is_float]


def never_clipped(function: Function) -> set[Value]:
    """Outputs and operands of sigmoid and softmax, and what these are by ops that only hand on or select values."""
    deciding = [op for op in _computing(function) if isinstance(op, TensorOp) and op.confident]
    left = [*function.returned, *(op.operands[0] for op in deciding)]
    found: set[Value] = set()
    while left:
        value = left.pop()
        if value not in found:
            found.add(value)
            if isinstance(value.op, TensorOp) and (value.op.moves_only or value.op.selects):
                left += [operand for operand in value.op.operands if not is_weight(operand)]
    return found


def _stated(function: Function) -> dict[Value, float]:
    """Rule 3: thresholds that the model states, by value."""
    known = stated(function)
    names = tensor_names(function) if known else {}
    return {value: known[each[0]] for value, each in names.items() if each[0] in known}


def thresholds(function: Function) -> dict[Value, float]:
    """The stored thresholds of a calibrated function. Raises CalibrationError when it is not calibrated."""
    inputs = function.attributes.get(INPUT_THRESHOLDS)
    found: dict[Value, float] = {}
    if inputs is None or len(inputs) != len(function.arguments):
        raise CalibrationError(
            f"function {function.name} is not calibrated", remedy="run the pass calibrate before quantize"
        )
    found.update(zip(function.arguments, inputs))
    for op in _computing(function):
        stored = op.attributes.get(THRESHOLD)
        values = stored if isinstance(stored, tuple) else (stored,) * len(op.results)
        for result, threshold in zip(op.results, values):
            if result.type.is_float and threshold is None:
                raise CalibrationError(
                    "it has no threshold",
                    layer=op.label,
                    kind=op.short_name,
                    remedy="run the pass calibrate after the passes that create layers",
                )
            found[result] = threshold or 0.0
    return found


def set_thresholds(function: Function, found: Sequence[float]) -> None:
    """Store thresholds of `float_values`."""
    _store(function, dict(zip(float_values(function), found)))


def make_table(module: Module) -> CalibrationTable:
    """The calibration table of a calibrated module: one entry per float tensor, in network order.

    Tensors that exist in the source have its name, those that only the compiler knows a name made from layer and op.
    """
    from bmcompiler.quant.table import CalibrationTable

    entries: dict[str, float] = {}
    for function in module.functions:
        names = tensor_names(function)
        entries.update((names[v][0], t) for v, t in thresholds(function).items() if v.type.is_float)
    return CalibrationTable.of(entries, module.main.name)


def tensor_names(function: Function) -> dict[Value, list[str]]:
    """Names under which a table may know each tensor, best first.

    Its source tensor; or else a name made from layer and op ("conv1/matmul", "conv1/matmul.1") and the names of its
    source layers from the last.
    """
    names = {value: [name] for value, name in zip(function.arguments, function.input_names)}
    made: dict[str, int] = {}
    for op in _computing(function):
        sources = op.attributes.get(TENSOR_NAME, ())
        sources = sources if isinstance(sources, tuple) else (sources,)
        for result in op.results:
            if result.index < len(sources) and sources[result.index]:
                names[result] = [sources[result.index]]
                continue
            name = f"{op.label}/{op.short_name}"
            count = made[name] = made.get(name, -1) + 1
            names[result] = [f"{name}.{count}" if count else name, *reversed(op.location)]
    return names


def _computing(function: Function) -> Iterator[Operation]:
    return (op for op in function.ops[:-1] if op.operands)


def _store(function: Function, found: Mapping[Value, float]) -> None:
    def get(value: Value) -> float:
        return float(found[value] or _HARMLESS) if value.type.is_float else 0.0

    function.attributes[INPUT_THRESHOLDS] = tuple(map(get, function.arguments))
    for op in _computing(function):
        values = tuple(map(get, op.results))
        op.attributes[THRESHOLD] = values[0] if len(values) == 1 else values


def _stored(function: Function) -> list[object]:
    """What this pass writes, to tell whether it changed."""
    ops = [(op.attributes.get(THRESHOLD), op.attributes.get(THRESHOLD_SOURCE)) for op in function.ops]
    return [function.attributes.get(INPUT_THRESHOLDS), *ops]


def _mark_source(function: Function, named: set[Value]) -> None:
    for op in _computing(function):
        op.attributes.pop(THRESHOLD_SOURCE, None)
        if named.issuperset(op.results):
            op.attributes[THRESHOLD_SOURCE] = "table"


def _by_name(thresholds: Mapping[str, float]) -> dict[str, float]:
    return {name: thresholds[typed] for name, typed in without_types(thresholds).items()} | dict(thresholds)


class _Lookup:
    """Rule 1."""

    def __init__(self, function: Function, known: Mapping[str, float]) -> None:
        self.function, self.known = function, known
        self.names = tensor_names(function)
        if has_versions(function.input_names, known):
            self.names = {value: [*names, *map(without_version, names)] for value, names in self.names.items()}
        self.found_by_name: set[Value] = set()

    def all(self) -> dict[Value, float]:
        found: dict[Value, float] = {}
        values = [*self.function.arguments, *(r for op in _computing(self.function) for r in op.results)]
        for value in values:
            if value.type.is_float:
                source = self.reordered(value)
                if source in found:
                    found[value] = found[source]
                    continue
                threshold = self.named(value)
                if threshold:
                    self.found_by_name.add(value)
                found[value] = threshold or self.derived(value, found)
        return found

    def reordered(self, value: Value) -> Value:
        """For an operand that a layer only puts in another order, what it was: the layer's name stands for its end."""
        op, users = value.op, value.users
        named = not isinstance(op, TensorOp) or TENSOR_NAME in op.attributes
        if op is None or named or op.short_name not in ("reshape", "transpose") or not users:
            return value
        return op.operands[0] if users[0].location == op.location else value

    def named(self, value: Value) -> float | None:
        return next((self.known[n] for n in self.names[value] if n in self.known), None)

    def inside(self, value: Value) -> float | None:
        """The threshold of a tensor that only ops of its own layer read, from the end of the layer."""
        op, users = value.op, value.users
        if op is None or TENSOR_NAME in op.attributes or not users or users[0].location != op.location:
            return None
        after = self.named(users[0].result) or self.inside(users[0].result) if len(users[0].results) == 1 else None
        return after**2 if after and users[0].short_name == "sqrt" else after

    def derived(self, value: Value, found: Mapping[Value, float]) -> float:
        users = value.users
        if len(users) == 1 and users[0].short_name == "relu":
            after = self.named(users[0].result)
            if after:
                return after
        op = value.op
        inner = self.inside(value)
        if inner:
            return inner
        inputs = [found[v] for v in op.operands if v in found] if op is not None else []
        if isinstance(op, TensorOp) and op.keeps_range() and inputs:
            return max(inputs)
        largest = max(map(abs, op.result_bounds())) if isinstance(op, TensorOp) else math.inf
        if largest < math.inf:
            return largest
        raise CalibrationError(
            f"neither the calibration table nor the model has a threshold for tensor '{self.names[value][0]}'",
            layer=op.label if op is not None else None,
            kind=op.short_name if op is not None else None,
            remedy=f"make the table again from this network with bmnet-calibrate, or pass {spelled('data')} instead",
        )
