"""Table lookup, scalar, per-channel, special-function and compare commands (bm1684.md 6.5 to 6.9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.chip import aligned_strides
from bmcompiler.backends.bm1684.isa import Eu, Precision
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric import fp32
from bmcompiler.numeric.arrays import Floats, Int32s
from bmcompiler.runtime.simulator.bm1684.operands import FP32, WORD, Operands, Packed, Reader
from bmcompiler.runtime.simulator.plan import Step

_ENTRIES = 256
_BYTE = np.dtype(np.uint8)
_SCALAR: dict[int, Callable[[Floats, Floats], Floats]] = {
    Eu.MUL: fp32.multiply,
    Eu.ADD: fp32.add,
    Eu.SUB: fp32.subtract,
    Eu.DIVIDE: fp32.divide,
}
_SQUARES: dict[int, Callable[[Floats, Floats], Floats]] = {
    Eu.SQUARE_SUM: fp32.add,
    Eu.SQUARE_DIFF: fp32.subtract,
}
_NORMALISE: dict[int, Callable[[Int32s], Int32s]] = {
    Eu.INT_NORMALIZE: fp32.nearest_exponent,
    Eu.FP32_NORMALIZE: fp32.nearest_power,
}


def _map(ops: Operands, name: str, dtype: np.dtype[Any] = FP32) -> Packed:
    """A word tensor of the result's shape in the aligned default layout."""
    shape = ops.size("res0")
    return ops.packed(name, shape, dtype, aligned_strides(shape, ops.lane(name)))


def _read(ops: Operands, name: str, dtype: np.dtype[Any] = FP32) -> Reader:
    """Reader of a tensor like `_map`, or of an immediate."""
    if not ops.is_constant(name):
        return _map(ops, name, dtype).read
    value = np.broadcast_to(ops.constant(name, dtype), ops.size("res0"))
    return lambda: value


def lut_step(ops: Operands) -> Step:
    """Step of res = table[index & 255]: indices are words, or plain bytes with precision int8."""
    f = ops.fields
    table, result = ops.memories.table(f["opd1_addr"], _ENTRIES).view(np.int32), _map(ops, "res0", WORD)
    if ops.precision("opd0") == Precision.INT8:
        shape = ops.size("res0")
        index: Reader = ops.tensor("opd0", shape, aligned_strides(shape, ops.lane("opd0"), 1), _BYTE).read
    else:
        index = _map(ops, "opd0", WORD).read
    return lambda: result.write(table[index() & (_ENTRIES - 1)])


def scalar_step(ops: Operands) -> Step:
    """Step of task 8: fp32 arithmetic with an optional addition of the old result."""
    function = _SCALAR.get(ops.fields["tsk_eu_typ"])
    if function is None:
        raise SimulatorError(f"operation {ops.fields['tsk_eu_typ']} does not exist for scalar commands")
    a, b = _read(ops, "opd0"), _read(ops, "opd1")
    return _accumulating(ops, lambda: function(a(), b()))


def _accumulating(ops: Operands, compute: Callable[[], Floats]) -> Step:
    result = _map(ops, "res0")
    if ops.fields["opt_res_add"]:
        return lambda: result.write(fp32.add(compute(), result.read()))
    return lambda: result.write(compute())


def linear_step(ops: Operands) -> Step:
    """Step of task 10: a * S + B, (a + B)^2 or (a - B)^2 with a vector or immediate S (opd2) and B (opd1)."""
    unit = ops.fields["tsk_eu_typ"]
    a, bias = _read(ops, "opd0"), _vector(ops, "opd1")
    if unit == Eu.MAC:
        scale = _vector(ops, "opd2")
        return _accumulating(ops, lambda: fp32.add(fp32.multiply(a(), scale()), bias()))
    combine = _SQUARES.get(unit)
    if combine is None:
        raise SimulatorError(f"operation {unit} does not exist for linear commands")
    result = _map(ops, "res0")

    def run() -> None:
        side = combine(a(), bias())
        result.write(fp32.multiply(side, side))

    return run


def _vector(ops: Operands, name: str) -> Reader:
    if ops.is_constant(name):
        value = ops.constant(name, FP32)
        return lambda: value
    return ops.compact(name, (1, ops.fields["res0_c"], 1, 1), FP32).read


def sfu_step(ops: Operands) -> Step:
    """Step of task 9: Taylor series, conversion to integer, normalisation, reciprocal square root."""
    unit = ops.fields["tsk_eu_typ"]
    if unit == Eu.TAYLOR:
        source, result = _read(ops, "opd0"), _map(ops, "res0")
        coefficients = ops.memories.table(ops.fields["opd1_addr"], ops.fields["opd1_n"])
        return lambda: result.write(fp32.taylor(source(), coefficients))
    if unit == Eu.RSQRT:
        source, result = _read(ops, "opd0"), _map(ops, "res0")
        return lambda: result.write(fp32.rsqrt(source()))
    if unit == Eu.FP32_TO_INT:
        source, result = _read(ops, "opd0"), _map(ops, "res0", WORD)
        return lambda: result.write(fp32.to_int(source()))
    normalise = _NORMALISE.get(unit)
    if normalise is None:
        raise SimulatorError(f"operation {unit} does not exist for special-function commands")
    source, result = _read(ops, "opd0", WORD), _map(ops, "res0", WORD)
    return lambda: result.write(normalise(source()))


def compare_step(ops: Operands) -> Step:
    """Step of task 13: res0 = max(A, B), res1 = A > B ? C : D, or both (bm1684.md 6.9)."""
    f = ops.fields
    unit = f["tsk_eu_typ"]
    if unit not in (Eu.CMP, Eu.SELECT, Eu.CMP_SELECT):
        raise SimulatorError(f"operation {unit} does not exist for compare commands")
    if not ops.is_float("opd0"):
        raise SimulatorError("compare commands work on fp32 only")
    a, b = _read(ops, "opd0"), _read(ops, "opd1")
    highest = _map(ops, "res0") if unit != Eu.SELECT else None
    if unit == Eu.CMP:
        result = _map(ops, "res0")
        return lambda: result.write(fp32.maximum(a(), b()))
    chosen, other, selected = _read(ops, "opd2", WORD), _read(ops, "opd3", WORD), _map(ops, "res1", WORD)

    def run() -> None:
        x, y = a(), b()
        picked = np.where(fp32.flush(x) > fp32.flush(y), chosen(), other())
        if highest:
            highest.write(fp32.larger(x, y))
        selected.write(picked)

    return run
