"""Pooling and depthwise convolutions (task 1; bm1684x-cube.md 6)."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.chip import CHIP
from bmcompiler.backends.bm1684x.codes import Layout, Pord, Precision, Rounding
from bmcompiler.backends.lanes.window_sums import from_lowest
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arrays import Array, Ints
from bmcompiler.runtime.simulator.bm1684x.cube.images import prepared
from bmcompiler.runtime.simulator.bm1684x.cube.integers import requantized, result_type, shift_of, signed_by, wrapped
from bmcompiler.runtime.simulator.bm1684x.operands import Operands, Reader, Work, check_work, dtype_of
from bmcompiler.runtime.simulator.bm1684x.vector.integers import rounding_of, saturated
from bmcompiler.runtime.simulator.bm1684x.vector.kinds import Kind
from bmcompiler.runtime.simulator.plan import Step
from bmcompiler.runtime.simulator.windows import window_of

_SHIFT_AT, _SHIFT_MASK = 8, 31  # where depthwise commands have their shift
_INPUTS = (Precision.INT8, Precision.FP16, Precision.FP32, Precision.BF16)


def pool_step(ops: Operands) -> Step:
    """Step of a pooling or depthwise command. Raises SimulatorError for types it has no arithmetic for."""
    precision, unit = ops.precision("opd0"), ops.fields["tsk_eu_typ"]
    if unit not in list(Pord):
        raise SimulatorError(f"what operation {unit} of pooling does is not known")
    if precision not in _INPUTS:
        raise SimulatorError(f"pooling and depthwise convolution of {precision.name.lower()} do not exist")
    window = window_of(ops.fields)
    check_work(Work.TAPS, *ops.shape("res0"), *window.kernel)
    if prod(window.kernel) > CHIP.lmem_size:
        raise SimulatorError(f"a window of {window.kernel} does not fit into a lane")
    kind = Kind(precision, ops.signed("opd0"))
    if kind.is_float:
        result_type(ops, True, precision)
    if unit == Pord.MAX:
        return _largest(ops, window, kind)
    if kind.is_float:
        return _float_average(ops, window, kind) if unit == Pord.AVERAGE else _float_depthwise(ops, window, kind)
    return _integer_average(ops, window) if unit == Pord.AVERAGE else _integer_depthwise(ops, window)


def _input(ops: Operands, window: Window, dtype: np.dtype[Any]) -> Reader:
    f = ops.fields
    shape = (f["res0_n"], f["res0_c"], f["opd0_h"], f["opd0_w"])
    return prepared(ops, window, ops.tensor("opd0", shape, dtype).read, dtype, f["res0_c"], zero=False)


def _kernel(ops: Operands, window: Window, dtype: np.dtype[Any]) -> Reader:
    """Reader of the kernel as (KH * KW, C, 1, 1)."""
    channels = ops.fields["res0_c"]
    shape = (window.kernel[0] * window.kernel[1], channels, 1, 1)
    if ops.is_constant("opd1"):
        filled = np.broadcast_to(ops.constant("opd1", dtype), shape)
        return lambda: filled
    tensor = ops.tensor("opd1", (1, channels, *window.kernel), dtype, Layout.COMPACT)
    turn = slice(None, None, -1) if ops.fields["kernel_rotate"] else slice(None)
    return lambda: tensor.read()[0, :, turn, turn].reshape(channels, -1).T.reshape(shape)


def _bias(ops: Operands, dtype: np.dtype[Any]) -> Reader:
    return ops.reader("opd2", (1, ops.fields["res0_c"], 1, 1), dtype, Layout.COMPACT)


def _largest(ops: Operands, window: Window, kind: Kind) -> Step:
    """Integers: the largest. Floats: best > value ? best : value in order of the window, in fp32 from the lowest on."""
    source = _input(ops, window, kind.dtype)
    dtype = kind.dtype if kind.is_float else result_type(ops, kind.signed)
    result = ops.result("res0", ops.shape("res0"), dtype)

    def run() -> None:
        best: Array | None = None
        for tap in window.taps(source()):
            if best is None:
                best = from_lowest(tap)
            elif kind.is_float:
                best = np.where(kind.floats.greater(best, tap), best, tap)
            else:
                np.maximum(best, tap, out=best)
        assert best is not None, "a window has at least one tap"
        if kind.precision == Precision.FP32:
            best = kind.floats.settle(best)
        result.write(best if kind.is_float else saturated(best, dtype))

    return run


def _integer_depthwise(ops: Operands, window: Window) -> Step:
    f, relu = ops.fields, ops.fields["tsk_eu_typ"] == Pord.DEPTHWISE_RELU
    signed = signed_by(ops, "opd0", "opd1", "opd2")
    shift, mode = f["res1_addr"] >> _SHIFT_AT & _SHIFT_MASK, rounding_of(f["opd2_n_str"])
    types = [dtype_of(Precision.INT8, ops.signed(name)) for name in ("opd0", "opd1")]
    source, kernel = _input(ops, window, types[0]), _kernel(ops, window, types[1])
    bias = _bias(ops, dtype_of(Precision.INT32, ops.signed("opd2")))
    dtype = result_type(ops, signed and not relu)
    result = ops.result("res0", ops.shape("res0"), dtype)

    def run() -> None:
        sums = _integer_sums(window, source(), kernel()) + bias().astype(np.int64)
        result.write(requantized(wrapped(sums, signed), shift, mode, dtype, relu))

    return run


def _integer_sums(window: Window, x: Array, kernel: Array) -> Ints:
    total = np.zeros((*x.shape[:2], *window.out), np.int32)
    for tap, factor in zip(window.taps(x), kernel.astype(np.int32)):
        total += tap * factor
    return total.astype(np.int64)


def _integer_average(ops: Operands, window: Window) -> Step:
    f, signed = ops.fields, ops.signed("opd0")
    shift = shift_of(f["opd2_addr"])
    factor = f["opd1_addr"] & 0xFF if ops.is_constant("opd1") else 0
    source, dtype = _input(ops, window, dtype_of(Precision.INT8, signed)), result_type(ops, signed)
    result = ops.result("res0", ops.shape("res0"), dtype)
    kernel = np.full((window.kernel[0] * window.kernel[1], 1, 1, 1), factor)

    def run() -> None:
        sums = wrapped(_integer_sums(window, source(), kernel), signed)
        result.write(requantized(sums, shift, Rounding.HALF_UP, dtype))

    return run


def _float_depthwise(ops: Operands, window: Window, kind: Kind) -> Step:
    """Bias and products in turn to two accumulators; 16-bit types round each product and each sum."""
    source, kernel, bias = _input(ops, window, kind.dtype), _kernel(ops, window, kind.dtype), _bias(ops, kind.dtype)
    result = ops.result("res0", ops.shape("res0"), kind.dtype)

    def run() -> None:
        zero = np.zeros(result.shape, kind.dtype)
        first = kind.floats.add(zero, bias())
        result.write(_in_turn(window, source(), kernel(), kind, (zero, first)))

    return run


def _float_average(ops: Operands, window: Window, kind: Kind) -> Step:
    """Products with the immediate in turn to two accumulators, which begin with -0."""
    source, result = _input(ops, window, kind.dtype), ops.result("res0", ops.shape("res0"), kind.dtype)
    factor = ops.constant("opd1", kind.dtype) if ops.is_constant("opd1") else np.zeros((), kind.dtype)
    kernel = np.broadcast_to(factor, (window.kernel[0] * window.kernel[1], 1, 1, 1))

    def run() -> None:
        empty = np.full(result.shape, 1 << (8 * kind.size - 1), kind.bits).view(kind.dtype)
        result.write(_in_turn(window, source(), kernel, kind, (empty, empty)))

    return run


def _in_turn(window: Window, x: Array, kernel: Array, kind: Kind, start: tuple[Array, Array]) -> Array:
    """The sum of two accumulators to which the products go in turn."""
    sums, arithmetic = list(start), kind.floats
    for k, tap in enumerate(window.taps(x)):
        sums[k & 1] = arithmetic.add(sums[k & 1], arithmetic.multiply(tap, kernel[k]))
    return arithmetic.add(*sums)
