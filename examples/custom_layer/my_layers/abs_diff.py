"""Caffe layer AbsDiff, gain * |a - b|, with int8 instructions for the BM1880.

layer { name: "diff" type: "AbsDiff" bottom: "a" bottom: "b" top: "diff" abs_diff_param { gain: 0.5 } }
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmcompiler.backends.bm1880 import bmkernel as bmk
from bmcompiler.backends.bm1880.custom import CustomizedTensorFixedInst
from bmcompiler.bmnet import CustomizedCaffeLayer, TensorOp
from bmcompiler.errors import ShapeError
from bmcompiler.numeric.arith import round_shift, saturate
from bmcompiler.plugins.custom_layers import register_cpu_function, register_tensor_inst

LARGEST_SHIFT, LARGEST_FACTOR = 15, 127


class AbsDiffLayer(CustomizedCaffeLayer):
    """Two bottoms of one shape, one top; `gain` is 1 when the prototxt does not say."""

    def layer_name(self) -> str:
        return "AbsDiff"

    def dump(self) -> None:
        print(f"{self.layer_.name}: AbsDiff of {list(self.layer_.bottom)}")

    def codegen(self, op: TensorOp) -> None:
        if op.input_shape_size() != 2 or op.input_shape(0).dims() != op.input_shape(1).dims():
            raise ShapeError("needs two bottoms of the same shape")
        op.add_output_shape().CopyFrom(op.input_shape(0))
        self.add_output_offset(0)
        op.mutable_tg_customized_param().add_f32_param(self.extra_param("abs_diff_param", "gain", 1.0))


@register_cpu_function("AbsDiff")
def abs_diff(inputs: list[np.ndarray], i32_params: tuple[int, ...], f32_params: tuple[float, ...]) -> np.ndarray:
    """The layer in real numbers: calibration measures its results, and the host runs it where the chip cannot."""
    return np.float32(f32_params[0]) * np.abs(inputs[0] - inputs[1])


@register_tensor_inst
class AbsDiffInst(CustomizedTensorFixedInst):
    """d = (a * ma - b * mb) >> shift, saturated; y = max(d, -d).

    An int8 value q stands for q * threshold / 128, so ma = |gain| * threshold_a / threshold_y * 2**shift, and mb
    likewise. A negative gain gives no absolute value: the host computes that.
    """

    def inst_name(self) -> str:
        return "AbsDiff"

    def dump(self) -> None:
        print(f"AbsDiff of {self.op_.input_shape(0).dims()}: factors and shift {self.factors()}")

    def unsupported_reason(self) -> str | None:
        if self.op_.tg_customized_param().f32_param(0) < 0:
            return "its gain is negative"
        return "its factors exceed 8 bits" if max(self.factors()[:2]) > LARGEST_FACTOR else None

    def encode(self) -> None:
        ctx, (ma, mb, shift) = self.ctx, self.factors()
        for offset, shape in self.flat_pieces(tensors=4):
            with self.local_tensors(shape, 4) as (a, b, low, high):
                bmk.bmk1880_gdma_load(ctx, a, self.op_.global_input(0) + offset, bmk.CTRL_NEURON)
                bmk.bmk1880_gdma_load(ctx, b, self.op_.global_input(1) + offset, bmk.CTRL_NEURON)
                bmk.bmk1880_tpu_mul_const(ctx, bmk.bmk1880_mul_const_param_t(high, low, a, ma, True, 0))
                mac = bmk.bmk1880_mac_const_param_t(high, low, True, b, -mb, True, 0, shift)
                bmk.bmk1880_tpu_mac_const(ctx, mac)
                bmk.bmk1880_tpu_mul_const(ctx, bmk.bmk1880_mul_const_param_t(None, a, low, -1, True, 0))
                bmk.bmk1880_tpu_max(ctx, bmk.bmk1880_max_param_t(low, low, a))
                bmk.bmk1880_gdma_store(ctx, low, self.op_.global_output(0) + offset, bmk.CTRL_NEURON)

    def compute(self, inputs: list[np.ndarray], function: Any) -> np.ndarray:
        """What `encode` computes, bit for bit."""
        ma, mb, shift = self.factors()
        a, b = (x.astype(np.int32) for x in inputs)
        difference = saturate(round_shift(a * ma - b * mb, shift), "i8")
        return np.maximum(difference, saturate(-difference.astype(np.int32), "i8"))

    def factors(self) -> tuple[int, int, int]:
        """(ma, mb, shift) with the largest shift at which both factors fit 8 bits."""
        gain = self.op_.tg_customized_param().f32_param(0)
        scale = abs(gain) / self.m_calibrationParameter.threshold_y[0]
        ratios = [scale * each.threshold_y[0] for each in self.m_inputCalibrationParameter]
        fits = (s for s in range(LARGEST_SHIFT, 0, -1) if round(max(ratios) * 2**s) <= LARGEST_FACTOR)
        shift = next(fits, 0)
        return round(ratios[0] * 2**shift), round(ratios[1] * 2**shift), shift
