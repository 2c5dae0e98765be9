"""The BM1880 instructions: d = (a * ma - b * mb) >> shift saturated to int8, y = max(d, -d).

A tensor of int8 values q stands for the reals q * threshold / 128, so ma = gain * threshold_a / threshold_y * 2**shift,
and mb likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from bmcompiler.arith import round_shift, saturate
from bmcompiler.backends.bm1880.bmkernel import (
    CTRL_AL,
    CTRL_NEURON,
    FMT_I8,
    bmk1880_gdma_load,
    bmk1880_gdma_store,
    bmk1880_mac_const_param_t,
    bmk1880_max_param_t,
    bmk1880_mul_const_param_t,
    bmk1880_tl_alloc,
    bmk1880_tl_free,
    bmk1880_tpu_mac_const,
    bmk1880_tpu_max,
    bmk1880_tpu_mul_const,
    shape_t4,
)
from bmcompiler.backends.bm1880.custom import CustomizedTensorFixedInst

LANES, WIDTH = 32, 1024
LARGEST_SHIFT, LARGEST_FACTOR = 15, 127


class AbsDiffInst(CustomizedTensorFixedInst):
    """Works through the flat tensors in pieces of 32 lanes of at most 1024 bytes."""

    def inst_name(self) -> str:
        return "AbsDiff"

    def dump(self) -> None:
        print(f"AbsDiff of {self.op_.input_shape(0).dims()}: factors and shift {self.factors()}")

    def unsupported_reason(self) -> str | None:
        if max(self.factors()[:2]) > LARGEST_FACTOR:
            return "the result's threshold is too small for an 8-bit factor"
        return None

    def encode(self) -> None:
        ctx = self.ctx
        factor_a, factor_b, shift = self.factors()
        for offset, lanes, width in pieces(prod(self.op_.input_shape(0).dims())):
            shape = shape_t4(1, lanes, 1, width)
            tensors = [bmk1880_tl_alloc(ctx, shape, FMT_I8, CTRL_AL) for _ in range(4)]
            a, b, low, high = tensors
            bmk1880_gdma_load(ctx, a, self.op_.global_input(0) + offset, CTRL_NEURON)
            bmk1880_gdma_load(ctx, b, self.op_.global_input(1) + offset, CTRL_NEURON)
            bmk1880_tpu_mul_const(ctx, bmk1880_mul_const_param_t(high, low, a, factor_a, True, 0))
            bmk1880_tpu_mac_const(ctx, bmk1880_mac_const_param_t(high, low, True, b, -factor_b, True, 0, shift))
            bmk1880_tpu_mul_const(ctx, bmk1880_mul_const_param_t(None, a, low, -1, True, 0))
            bmk1880_tpu_max(ctx, bmk1880_max_param_t(low, low, a))
            bmk1880_gdma_store(ctx, low, self.op_.global_output(0) + offset, CTRL_NEURON)
            for tensor in reversed(tensors):
                bmk1880_tl_free(ctx, tensor)

    def compute(self, inputs: list[np.ndarray], function: Callable[..., np.ndarray] | None) -> np.ndarray:
        factor_a, factor_b, shift = self.factors()
        a, b = (x.astype(np.int32) for x in inputs)
        difference = saturate(round_shift(a * factor_a - b * factor_b, shift), "i8")
        return np.maximum(difference, saturate(-difference.astype(np.int32), "i8"))

    def factors(self) -> tuple[int, int, int]:
        """(ma, mb, shift) with the largest shift at which both factors fit."""
        gain = self.op_.tg_customized_param().f32_param(0)
        result = self.m_calibrationParameter.threshold_y[0]
        ratios = [abs(gain) * p.threshold_y[0] / result for p in self.m_inputCalibrationParameter]
        for shift in range(LARGEST_SHIFT, -1, -1):
            a, b = (round(ratio * 2**shift) for ratio in ratios)
            if max(a, b) <= LARGEST_FACTOR:
                break
        return a, b, shift


def pieces(size: int) -> Iterator[tuple[int, int, int]]:
    """(offset, lanes, width) that cover `size` bytes: full lanes first, then what does not fill 32 lanes."""
    offset = 0
    while size - offset >= LANES:
        width = min(WIDTH, (size - offset) // LANES)
        yield offset, LANES, width
        offset += LANES * width
    if offset < size:
        yield offset, size - offset, 1
