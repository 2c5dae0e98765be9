"""The op behind custom layers: a name, numbers and shapes; its meaning comes from a plugin."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from bmcompiler.bmnet import inst as insts
from bmcompiler.bmnet import tensor_op
from bmcompiler.errors import UnsupportedError
from bmcompiler.ir import TensorType, Value
from bmcompiler.numeric.arrays import Array
from bmcompiler.ops.base import Floats, Ints, Kind, TensorOp, attr, tensorop, variadic_operand
from bmcompiler.plugins.custom_layers import (
    GROUP,
    CpuFunction,
    Shaped,
    cpu_function,
    plugin_kernel,
    register_cpu_function,
    tensor_inst,
)
from bmcompiler.plugins.registry import failure_note, plugin_code
from bmcompiler.quant.table import BlobParameter, LayerEntry
from bmcompiler.target import Kernel, find_target

__all__ = ["Customized", "register_cpu_function"]


def _shapes(value: Any) -> tuple[tuple[int, ...], ...]:
    if isinstance(value, (str, bytes)):
        raise TypeError
    return tuple(Ints.normalize(shape) for shape in value)


Shapes = Kind("list of shapes", _shapes)


@tensorop("customized")
class Customized(TensorOp):
    """A layer that only a plugin understands (the vendor's BMNet Library).

    %y = "tensorop.customized"(%x) {f32_params = [0.1], output_shapes = [[1, 8]], sub_type = "my_relu"} : (...) -> ...

    One result per entry of output_shapes, of the first operand's element type unless stated. `evaluate` calls the CPU
    function registered for `sub_type` (see `bmcompiler.plugins.custom_layers`).

    Integer form: `target` names the chip whose instruction class for `sub_type` defines the meaning; operands and
    results are i8 with a quantization.
    """

    inputs = variadic_operand()
    sub_type = attr(str)
    output_shapes = attr(Shapes)
    i32_params = attr(Ints, ())
    f32_params = attr(Floats, ())
    target = attr(str, "")
    free_dtype = True

    @property
    def title(self) -> str:
        return self.sub_type or self.short_name

    def infer(self) -> list[TensorType]:
        if not self.output_shapes or any(d < 1 for shape in self.output_shapes for d in shape):
            raise self.shape_error(f"needs output shapes with positive dimensions, got {list(self.output_shapes)}")
        dtype = self.operands[0].dtype if self.operands else "f32"
        return [TensorType(shape, dtype) for shape in self.output_shapes]

    def check(self) -> None:
        values = (*self.operands, *self.results)
        if self.target and any(v.dtype != "i8" or v.type.quant is None for v in values):
            raise self.invalid(f"its form for {self.target} takes and gives i8 with a quantization")

    def evaluate(self, *arrays: Array) -> tuple[Array, ...]:
        function = cpu_function(self.sub_type)
        if isinstance(function, Shaped):
            function = function.shaped(self.output_shapes)
        if self.target:
            out = self._integers(arrays, function)
        else:
            self.need_cpu_function()
            assert function is not None, "`need_cpu_function` looked"
            with plugin_code(f"the CPU function of custom layer '{self.sub_type}'"):
                out = function(list(arrays), self.i32_params, self.f32_params)
        outs = out if isinstance(out, (tuple, list)) else (out,)
        if len(outs) != len(self.results):
            raise self.shape_error(f"its plugin computed {len(outs)} outputs, declared {len(self.results)}")
        return tuple(self._result(np.asarray(array), index) for index, array in enumerate(outs))

    def _integers(self, arrays: Sequence[Array], function: CpuFunction | None) -> np.ndarray:
        """What the plugin's kernel or instruction class computes."""
        kind = plugin_kernel(self.target, self)
        if kind is not None and kind.evaluate is not Kernel.evaluate:
            kernel = find_target(self.target).kernel_for(self)
            assert kernel is not None, "the target has a kernel: `plugin_kernel` found it"
            with plugin_code(f"evaluate() of the kernel of custom layer '{self.sub_type}'"):
                return kernel.evaluate(self, *arrays)
        inst = self.inst(self.target)
        if not isinstance(inst, insts.TensorFixedInst):
            raise self.not_registered(f"instructions for {self.target}, or kernel with its meaning (evaluate)")
        with plugin_code(f"compute() of custom layer '{self.sub_type}'"):
            return inst.compute(list(arrays), function)

    def need_cpu_function(self) -> None:
        """Raise UnsupportedError unless the layer can be computed on the host."""
        if cpu_function(self.sub_type) is None:
            raise self.not_registered("CPU function")

    def not_registered(self, what: str) -> UnsupportedError:
        """The error for a plugin that is not there."""
        return UnsupportedError(
            f"custom layer '{self.sub_type}' has no {what}",
            layer=self.label,
            remedy=f"install the plugin that registers one (entry point group '{GROUP}')" + failure_note(GROUP),
        )

    def inst(
        self,
        target: str,
        inputs: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
    ) -> insts.TensorInst | None:
        """An instruction object for this op, its op_ and calibration parameters filled in; None when there is no class.

        Args:
            inputs, outputs: byte offsets in device memory, during code generation.
        """
        with plugin_code(f"the instruction class of custom layer '{self.sub_type}'"):
            inst = tensor_inst(target, self.sub_type)
        if inst is None:
            return None
        param = tensor_op.TGCustomizedParameter(self.sub_type, self.i32_params, self.f32_params)
        shapes = [v.shape for v in self.operands], [v.shape for v in self.results]
        inst.op_ = tensor_op.TensorOp(*shapes, param, inputs, outputs)
        if isinstance(inst, insts.TensorFixedInst):
            inst.SetCalibrationParameter(_entry(self.label, self.results))
            for value in self.operands:
                inst.AddInputCalibrationParameter(_entry(value.op.label if value.op else "input", [value]))
        return inst

    def _result(self, array: np.ndarray, index: int) -> np.ndarray:
        type = self.results[index].type
        if array.size != prod(type.shape):
            raise self.shape_error(f"its plugin computed {list(array.shape)} for output {index}, declared {type}")
        return array.reshape(type.shape).astype(type.numpy, copy=False)


def _entry(name: str, values: Sequence[Value]) -> LayerEntry:
    """Thresholds of values as a calibration table says them; 0 = unknown."""
    thresholds = tuple(v.type.quant.threshold if v.type.quant is not None else 0.0 for v in values)
    return LayerEntry(name, thresholds, blob_param=tuple(BlobParameter(name, t) for t in thresholds))
