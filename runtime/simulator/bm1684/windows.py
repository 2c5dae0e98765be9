"""Convolution (task 0), pooling and depthwise convolution (task 1) (bm1684.md 6.1, 6.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684.chip import align_up, aligned_strides
from bmcompiler.backends.bm1684.isa import Eu, Precision, StrideCode
from bmcompiler.backends.bm1684.machine import depthwise_sums, float_convolution
from bmcompiler.backends.lanes.window_sums import largest
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arith import conv2d
from bmcompiler.numeric.arrays import Array, IntArray
from bmcompiler.numeric.fp32 import add, flush
from bmcompiler.runtime.simulator.bm1684.operands import FP32, Operands, Packed, Reader, integer_dtype, register_strides
from bmcompiler.runtime.simulator.plan import Step
from bmcompiler.runtime.simulator.windows import window_of

_BYTE_RANGE = 255


def _input(ops: Operands, channels: int, dtype: np.dtype[Any]) -> Packed:
    shape = (ops.fields["res0_n"], channels, ops.fields["opd0_h"], ops.fields["opd0_w"])
    return ops.packed("opd0", shape, dtype)


def _result(ops: Operands, dtype: np.dtype[Any]) -> Packed:
    shape = ops.size("res0")
    if dtype.itemsize == 2:
        return ops.pixels("res0", shape, dtype)
    return ops.packed("res0", shape, dtype, aligned_strides(shape, ops.lane("res0")))


def _bias(ops: Operands, dtype: np.dtype[Any]) -> Reader | None:
    """Reader of the bias (1, C, 1, 1), when the command has one."""
    if ops.fields["tsk_opd_num"] != 3:
        return None
    if ops.is_constant("opd2"):
        raise SimulatorError("the bias of a window command cannot be an immediate")
    return ops.compact("opd2", (1, ops.fields["res0_c"], 1, 1), dtype).read


def _kernel(ops: Operands, window: Window, dtype: np.dtype[Any]) -> Reader:
    """Reader of the kernel of a convolution, as (rows, columns, input channels padded to groups, output channels)."""
    f = ops.fields
    group = 8 // dtype.itemsize if dtype == FP32 else 4
    channels = align_up(f["opd0_c"], group)
    if ops.is_constant("opd1"):
        filled = np.zeros((*window.kernel, channels, f["res0_c"]), dtype)
        filled[:, :, : f["opd0_c"]] = ops.constant("opd1", dtype)
        return lambda: filled
    if f["short_opd1_str"] != StrideCode.EXPLICIT:
        raise SimulatorError("a convolution needs the stride registers of its kernel")
    chunk = np.dtype(f"<u{group * dtype.itemsize}")
    steps = tuple(stride * chunk.itemsize for stride in register_strides(f, "opd1"))
    shape = (channels // group, f["res0_c"], *window.kernel)
    tensor = ops.tensor("opd1", shape, steps, chunk)  # type: ignore[arg-type]
    rotate = f["opt_kernel_rotate"]

    def read() -> Array:
        chunks = tensor.read()
        if rotate:
            chunks = chunks[:, :, ::-1, ::-1]
        ordered = np.ascontiguousarray(chunks.transpose(2, 3, 0, 1)).view(dtype)
        split = ordered.reshape(*ordered.shape[:3], f["res0_c"], group)
        return split.swapaxes(3, 4).reshape(*window.kernel, channels, f["res0_c"])

    return read


def convolution_step(ops: Operands) -> Step:
    """Step of a convolution. Raises SimulatorError for types it has no arithmetic for."""
    f = ops.fields
    if f["tsk_eu_typ"] != Eu.MUL or f["opt_winograd"]:
        raise SimulatorError("only the plain form of convolution is known")
    window = window_of(f)
    if ops.is_float("res0") and ops.is_float("opd0"):
        return _float_convolution(ops, window)
    if ops.precision("res0") not in (Precision.INT8, Precision.INT16) or f["opt_res_add"]:
        raise SimulatorError("an int8 convolution gives int8 or int16 and cannot accumulate")
    return _integer_convolution(ops, window)


def _float_convolution(ops: Operands, window: Window) -> Step:
    source = _input(ops, ops.fields["opd0_c"], FP32)
    result, kernel, bias = _result(ops, FP32), _kernel(ops, window, FP32), _bias(ops, FP32)
    accumulate, fast = ops.fields["opt_res_add"], ops.fast

    def run() -> None:
        sums = float_convolution(window, source.read(), kernel(), fast)
        if bias:
            sums = add(sums, bias())
        result.write(add(sums, result.read()) if accumulate else sums)

    return run


def _integer_convolution(ops: Operands, window: Window) -> Step:
    f = ops.fields
    types = [integer_dtype(Precision.INT8, f[f"opt_{name}_sign"]) for name in ("opd0", "opd1")]
    source, kernel = _input(ops, f["opd0_c"], types[0]), _kernel(ops, window, types[1])
    requantize, result = _integer_end(ops)

    def run() -> None:
        weight = kernel()[:, :, : f["opd0_c"]].transpose(3, 2, 0, 1)
        x = window.prepare(source.read())
        result.write(requantize(conv2d(x, weight, strides=window.stride, dilations=window.dilation)))

    return run


def _integer_end(ops: Operands, averaging: bool = False) -> tuple[Callable[[IntArray], IntArray], Packed]:
    """Bias, rounding and saturation of integer sums (N, C, OH, OW), and where they go.

    `averaging`: the command is average pooling when its kernel is a constant.
    """
    f = ops.fields
    if averaging and ops.is_constant("opd1"):  # looks neither at a bias nor at the sign of its multiplier
        bias, signs = None, ["opd0"]
    else:
        bias = _bias(ops, integer_dtype(Precision.INT16, f["opt_opd2_sign"]))
        signs = ["opd0", "opd1", *(["opd2"] if bias else [])]
    unsigned = ops.unsigned_result(*signs)
    exact = ops.requantizer(unsigned)
    result = _result(ops, integer_dtype(ops.precision("res0"), 1))

    def requantize(sums: IntArray) -> IntArray:
        return exact(sums + bias().astype(np.int32) if bias else sums)

    return requantize, result


def window_step(ops: Operands) -> Step:
    """Step of max pooling, average pooling or depthwise convolution. Raises SimulatorError for other operations."""
    f = ops.fields
    window = window_of(f, counted=False)
    if f["tsk_eu_typ"] == Eu.MAX:
        return _max_pooling(ops, window)
    if f["tsk_eu_typ"] != Eu.MAC:
        raise SimulatorError(f"operation {f['tsk_eu_typ']} does not exist for pooling and depthwise convolution")
    if ops.is_float("res0") and ops.is_float("opd0"):
        return _float_depthwise(ops, window)
    return _integer_depthwise(ops, window)


def _max_pooling(ops: Operands, window: Window) -> Step:
    dtype = ops.dtype("opd0")
    if dtype.itemsize == 2 or ops.precision("res0") != ops.precision("opd0"):
        raise SimulatorError("max pooling works on fp32 and 8-bit data of one type")
    if dtype == FP32 and window.spread != (1, 1):
        raise SimulatorError("what fp32 max pooling does with inserted zeros is not known")
    window = replace(window, dilation=(1, 1))  # the pooling unit knows none
    source, result = _aligned_input(ops, dtype), _result(ops, dtype)
    positive = dtype != FP32 and ops.fields["opt_relu"]
    border: float = float(np.finfo(dtype).min) if dtype == FP32 else int(np.iinfo(dtype).min)

    def run() -> None:
        best = largest(window, source.read(), border)
        result.write(np.where(best.view(np.int8) < 0, 0, best) if positive else best)

    return run


def _aligned_input(ops: Operands, dtype: np.dtype[Any]) -> Packed:
    """Input of task 1: its channels are those of the result, its layout is always the default."""
    f = ops.fields
    shape = (f["res0_n"], f["res0_c"], f["opd0_h"], f["opd0_w"])
    return ops.packed("opd0", shape, dtype, aligned_strides(shape, ops.lane("opd0")))


def _float_depthwise(ops: Operands, window: Window) -> Step:
    source, result, bias = _aligned_input(ops, FP32), _result(ops, FP32), _bias(ops, FP32)
    factors = _depthwise_kernel(ops, window, FP32)

    def run() -> None:
        x, weight = flush(window.prepare(source.read())), flush(factors())
        sums = depthwise_sums(window, x, weight)
        result.write(add(sums, bias()) if bias else sums)

    return run


def _depthwise_kernel(ops: Operands, window: Window, dtype: np.dtype[Any]) -> Reader:
    """Reader of the kernel as (C, KH * KW)."""
    channels, area = ops.fields["res0_c"], window.kernel[0] * window.kernel[1]
    if ops.is_constant("opd1"):
        value = ops.constant("opd1", dtype) if dtype == FP32 else np.array(area_multiplier(area)).astype(dtype)
        filled = np.broadcast_to(value, (channels, area))
        return lambda: filled
    tensor = ops.compact("opd1", (1, channels, *window.kernel), dtype)
    return lambda: tensor.read().reshape(channels, area)


def area_multiplier(area: int) -> int:
    """Multiplier that int8 average pooling derives from the kernel's area; 0 from 226 on (bm1684.md 6.2)."""
    if area > 225:
        return 0
    shift = 0
    while round(2 ** (shift + 1) / area) <= _BYTE_RANGE:
        shift += 1
    value = round(2**shift / area)
    while value and value % 2 == 0:
        value //= 2
    return value


def _integer_depthwise(ops: Operands, window: Window) -> Step:
    f = ops.fields
    if ops.precision("res0") not in (Precision.INT8, Precision.INT16):
        raise SimulatorError("8-bit depthwise convolution gives int8 or int16")
    if ops.precision("res0") == Precision.INT16 and ops.is_constant("opd1"):
        raise SimulatorError("average pooling has no int16 result")
    types = [integer_dtype(Precision.INT8, f[f"opt_{name}_sign"]) for name in ("opd0", "opd1")]
    if ops.is_constant("opd1") and window.dilation != (1, 1):
        raise SimulatorError("what 8-bit average pooling does with dilation is not known")
    source, factors = _aligned_input(ops, types[0]), _depthwise_kernel(ops, window, types[1])
    requantize, result = _integer_end(ops, averaging=True)

    def run() -> None:
        x, weight = window.prepare(source.read()), factors().astype(np.int32)
        sums = np.zeros((*x.shape[:2], *window.out), np.int32)
        for k, tap in enumerate(window.taps(x)):
            sums += tap * weight[:, k, None, None]
        result.write(requantize(sums))

    return run
