"""Convolutions (task 0; bm1684x-cube.md 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bmcompiler.backends.bm1684x.codes import ITEM_BYTES, Conv, Layout, Precision, Rounding
from bmcompiler.backends.lanes.windows import Window
from bmcompiler.chip import align_up
from bmcompiler.errors import SimulatorError
from bmcompiler.numeric.arith import conv2d
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.numeric.fp32 import add
from bmcompiler.numeric.fused import GROUP, fused_product
from bmcompiler.numeric.half_products import half_product
from bmcompiler.numeric.halves import BF16, FP16, Half
from bmcompiler.numeric.ordered import two_sums
from bmcompiler.numeric.sampled import convolution_sums
from bmcompiler.runtime.simulator.bm1684x.cube.images import prepared, windows
from bmcompiler.runtime.simulator.bm1684x.cube.integers import requantized, result_type, shift_of, signed_by, wrapped
from bmcompiler.runtime.simulator.bm1684x.operands import (
    FP32,
    HALVES,
    Operands,
    Reader,
    Work,
    check_work,
    dtype_of,
    products_of,
)
from bmcompiler.runtime.simulator.bm1684x.vector.integers import saturated
from bmcompiler.runtime.simulator.plan import Step
from bmcompiler.runtime.simulator.windows import window_of

_LAST_UNIT = 6
_GROUPS = {Precision.INT8: 64, Precision.FP16: GROUP, Precision.BF16: GROUP, Precision.FP32: 1}
HALF_TYPES = {Precision.FP16: FP16, Precision.BF16: BF16}
_GATHERED = 1 << 21  # values of the gathered columns of a float convolution at a time
_INT16 = np.dtype(np.int16)


def conv_step(ops: Operands) -> Step:
    """Step of a convolution. Raises SimulatorError for types it has no arithmetic for."""
    precision, unit = ops.precision("opd0"), ops.fields["tsk_eu_typ"]
    if precision not in _GROUPS or unit > _LAST_UNIT:
        raise SimulatorError(f"a convolution of {precision.name.lower()} with operation {unit} has no known result")
    window = window_of(ops.fields)
    weights = (ops.fields["res0_c"], ops.fields["opd0_c"], *window.kernel)
    check_work(Work.WEIGHTS, *weights)
    check_work(products_of(precision), ops.fields["res0_n"], *window.out, *weights)
    if precision == Precision.INT8:
        return _normal(ops, window) if unit == Conv.NORMAL else _requantizing(ops, window)
    if unit != Conv.NORMAL:
        raise SimulatorError(f"operation {unit} exists for convolutions of int8 alone")
    return _single(ops, window) if precision == Precision.FP32 else _half(ops, window, precision)


def _input(ops: Operands, window: Window, dtype: np.dtype[Any], zero: bool = False) -> Reader:
    f = ops.fields
    shape = (f["res0_n"], f["opd0_c"], f["opd0_h"], f["opd0_w"])
    source = ops.tensor("opd0", shape, dtype, ops.layout("opd0"))
    return prepared(ops, window, source.read, dtype, f["opd0_c"], zero)


def _kernel(ops: Operands, window: Window, dtype: np.dtype[Any]) -> Reader:
    """Reader of the kernel as (OC, groups of input channels, KH, KW, channels of a group)."""
    f = ops.fields
    group = _GROUPS[ops.precision("opd0")]
    shape = (f["res0_c"], -(-f["opd0_c"] // group), *window.kernel, group)
    if ops.is_constant("opd1"):
        filled = np.broadcast_to(ops.constant("opd1", dtype), shape)
        return lambda: filled
    row = align_up(f["opd0_c"], group) * window.kernel[0] * window.kernel[1]
    tensor = ops.tensor("opd1", (1, f["res0_c"], 1, row), dtype, Layout.COMPACT)
    turn = slice(None, None, -1) if f["kernel_rotate"] else slice(None)
    return lambda: tensor.read().reshape(shape)[:, :, turn, turn]


def _per_channel(ops: Operands, name: str, dtype: np.dtype[Any]) -> Reader:
    """Reader of a value per output channel, or of an immediate, as (1, C or 1, 1, 1)."""
    if ops.is_constant(name):
        value = ops.constant(name, dtype).reshape(1, 1, 1, 1)
        return lambda: value
    return ops.tensor(name, (1, ops.fields["res0_c"], 1, 1), dtype, Layout.COMPACT).read


# -- integers ----------------------------------------------------------------------------------------------------------
def _sums(ops: Operands, window: Window, zero_point: Reader | None) -> Reader:
    """Reader of exact sums of input times (kernel - zero point)."""
    f, channels = ops.fields, ops.fields["opd0_c"]
    types = [dtype_of(Precision.INT8, ops.signed(name)) for name in ("opd0", "opd1")]
    source, kernel = _input(ops, window, types[0], zero=zero_point is None), _kernel(ops, window, types[1])

    def read() -> Array:
        groups = kernel()
        weight = groups.transpose(0, 1, 4, 2, 3).reshape(f["res0_c"], -1, *window.kernel)[:, :channels]
        zeros = zero_point().reshape(-1, 1, 1, 1) if zero_point else np.zeros(1, np.int8)
        if zeros.any():
            weight = weight.astype(np.int16) - zeros
        return conv2d(source(), weight, strides=window.stride, dilations=window.dilation)

    return read


def _normal(ops: Operands, window: Window) -> Step:
    f = ops.fields
    unsigned = not signed_by(ops, "opd0", "opd1", "opd2") and ops.is_constant("opd2") and f["opd2_addr"] == 0
    sums = _sums(ops, window, _per_channel(ops, "opd2", dtype_of(Precision.INT8, ops.signed("opd2"))))
    dtype = result_type(ops, not unsigned)
    result = ops.result("res0", ops.shape("res0"), dtype)
    accumulates = bool(f["res_add"]) and ops.precision("res0") == Precision.INT32

    def run() -> None:
        values = wrapped(sums(), not unsigned)
        result.write(values + result.read() if accumulates else saturated(values, dtype))

    return run


def _requantizing(ops: Operands, window: Window) -> Step:
    f, relu = ops.fields, ops.fields["tsk_eu_typ"] == Conv.REQUANT_RELU
    if not ops.is_constant("opd3"):
        raise SimulatorError("the shift of a requantizing convolution must be an immediate")
    signed, shift = signed_by(ops, "opd0", "opd1", "opd2"), shift_of(f["opd3_addr"] & 0xFF)
    sums = _sums(ops, window, None)
    bias = _per_channel(ops, "opd2", dtype_of(Precision.INT16, ops.signed("opd2")))
    dtype = result_type(ops, signed and not relu)
    result = ops.result("res0", ops.shape("res0"), dtype)
    accumulates = bool(f["res_add"]) and ops.precision("res0") == Precision.INT32

    def run() -> None:
        total = wrapped(sums() + bias().astype(np.int64), signed)
        values = requantized(total, shift, Rounding.HALF_UP, dtype, relu)
        result.write(values + result.read() if accumulates else values)

    return run


# -- floats ------------------------------------------------------------------------------------------------------------
_Product = Callable[[Floats, Floats, Floats, Floats | None], Array]
"""(kernel (K, OC), columns (K, pixels), bias (OC, 1), old results (OC, pixels)) -> results (OC, pixels)."""


def _by_blocks(
    window: Window,
    columns: Callable[[Array], Floats],
    x: Floats,
    rows: Floats,
    product: _Product,
    dtype: np.dtype[Any] = FP32,
) -> Callable[[Floats, Floats | None], Array]:
    """Applies `product`, whose results are of `dtype`, to blocks of rows of the result."""

    def run(bias: Floats, old: Floats | None) -> Array:
        views = windows(window, x)
        out = np.empty((len(x), rows.shape[1], *window.out), dtype)
        step = max(1, _GATHERED // max(1, len(rows) * window.out[1]))
        for image in range(len(x)):
            for y in range(0, window.out[0], step):
                part = out[image, :, y : y + step]
                before = None if old is None else old[image, :, y : y + step].reshape(len(part), -1)
                found = product(rows, columns(views[image, :, :, :, y : y + step]), bias, before)
                part[...] = found.reshape(part.shape)
        return out

    return run


def _single(ops: Operands, window: Window) -> Step:
    """fp32: products in order of channel, row, column, in turn to two accumulators, the first of which has the bias."""
    result_type(ops, True, Precision.FP32)
    source, kernel = _input(ops, window, FP32), _kernel(ops, window, FP32)
    bias, result = _per_channel(ops, "opd2", FP32), ops.result("res0", ops.shape("res0"), FP32)
    accumulates, product = ops.fields["res_add"], fast_product if ops.fast else _two_sums

    def columns(views: Array) -> Floats:
        return views.reshape(-1, views.shape[-2] * views.shape[-1])

    def run() -> None:
        taps = kernel()
        rows = taps.reshape(len(taps), -1).T
        sums = _by_blocks(window, columns, source(), rows, product)
        result.write(sums(bias().reshape(-1, 1), result.read() if accumulates else None))

    return run


def _two_sums(rows: Floats, columns: Floats, bias: Floats, old: Floats | None) -> Floats:
    if old is None:
        return convolution_sums(rows, columns, bias, two_sums)
    return two_sums(rows, columns, bias, old)


def fast_product(rows: Floats, columns: Floats, bias: Floats, old: Floats | None) -> Floats:
    """rows.T @ columns + bias + old in the order of BLAS: close to the chip's results, not equal."""
    sums = rows.T @ columns + bias
    return sums if old is None else sums + old


def group_sizes(channels: int, taps: int) -> list[int]:
    """Sizes of the groups of products of one result: 32 channels of one tap each, then the remaining channels."""
    whole, rest = divmod(channels, GROUP)
    return [GROUP] * (whole * taps) + [rest] * (taps if rest else 0)


def half_sums(ops: Operands, half: Half, groups: Sequence[int]) -> Callable[[Floats, Floats, Floats], Array]:
    """What makes (M, N) sums of (K, M) and (K, N) on top of others, (M, N), as the command stores them."""
    narrow = ops.precision("res0") in HALVES
    if narrow and not ops.fast:
        return lambda a, b, start: half_product(a, b, groups, start, half)
    if narrow:
        return lambda a, b, start: half.narrow(fast_product(a, b, start, None))
    if ops.fast:
        return lambda a, b, start: fast_product(a, b, start, None)
    return lambda a, b, start: fused_product(a, b, groups, start)


def _half(ops: Operands, window: Window, precision: Precision) -> Step:
    """fp16 and bf16: sums of groups of 32 channels, added to the bias in fp32; groups outermost, then row, column."""
    f, half = ops.fields, HALF_TYPES[precision]
    item = np.dtype(f"u{ITEM_BYTES[precision]}")
    result_type(ops, True, Precision.FP32, precision)
    source, kernel, bias = _input(ops, window, item), _kernel(ops, window, item), _per_channel(ops, "opd2", FP32)
    old = ops.tensor("res0", ops.shape("res0"), FP32) if f["res_add"] else None
    result = ops.result("res0", ops.shape("res0"), ops.dtype("res0"))
    channels = f["opd0_c"]
    whole = channels // GROUP
    groups = group_sizes(channels, window.kernel[0] * window.kernel[1])
    split = whole * GROUP

    def columns(views: Array) -> Floats:
        pixels = views.shape[-2] * views.shape[-1]
        full = views[:split].reshape(whole, GROUP, *views.shape[1:]).transpose(0, 2, 3, 1, 4, 5)
        rest = views[split:].transpose(1, 2, 0, 3, 4)
        return np.concatenate([full.reshape(-1, pixels), rest.reshape(-1, pixels)])

    sums_of = half_sums(ops, half, groups)

    def product(rows: Floats, some: Floats, bias: Floats, old: Floats | None) -> Array:
        return sums_of(rows, some, bias if old is None else add(bias, old))

    def run() -> None:
        taps = kernel()
        count = len(taps)
        parts = [taps[:, :whole].reshape(count, -1), taps[:, whole:, :, :, : channels - split].reshape(count, -1)]
        rows = half.widen(np.concatenate(parts, axis=1).T)
        sums = _by_blocks(window, columns, half.widen(source()), rows, product, result.dtype)
        result.write(sums(bias().reshape(-1, 1), old.read() if old else None))

    return run
