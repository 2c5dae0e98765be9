"""From an op to instructions (as in the vendor's BMNet library): TensorInst and TensorFixedInst.

The class to derive from, CustomizedTensorFixedInst, comes with the chip whose instructions it emits: it is
`bmcompiler.bmnet.CustomizedTensorFixedInst`, which asks the target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from bmcompiler.bmnet.prototypes import BMNET
from bmcompiler.bmnet.tensor_op import TensorOp
from bmcompiler.capi.kinds import object_or_class
from bmcompiler.errors import UnsupportedError
from bmcompiler.numeric.arith import dequantize, quantize_real
from bmcompiler.numeric.arrays import IntArray
from bmcompiler.quant.table import LayerEntry

LayerCalibrationParameter: TypeAlias = LayerEntry
"""Thresholds of one layer, as its line of a calibration table has them (`threshold_y`, one per result)."""

BMNET.struct(LayerEntry)


class TensorInst(ABC):
    """Turns one op into instructions of a chip. One object is made per op, without arguments; then `op_` is set.

    `target` names the chip; a target's own subclass sets it.
    """

    target: ClassVar[str] = ""

    def __init__(self, op: TensorOp | None = None) -> None:
        self.op_: TensorOp = TensorOp([]) if op is None else op

    @abstractmethod
    def inst_name(self) -> str:
        """The sub type of the ops it serves."""

    @abstractmethod
    def dump(self) -> None:
        """Print what is worth knowing about the op."""

    @abstractmethod
    def encode(self) -> None:
        """Emit the instructions."""


BMNET.add(object_or_class("inst_t", TensorInst))


class TensorFixedInst(TensorInst):
    """A `TensorInst` for integers: it knows the thresholds of its own results and of its inputs.

    `m_calibrationParameter.threshold_y[i]` is the real magnitude that 128 stands for in result i, and
    `m_inputCalibrationParameter[i].threshold_y[0]` in input i.
    """

    def __init__(self, op: TensorOp | None = None) -> None:
        super().__init__(op)
        self.m_calibrationParameter = LayerCalibrationParameter("")
        self.m_inputCalibrationParameter: list[LayerCalibrationParameter] = []

    @BMNET.checked
    def SetCalibrationParameter(self, calibration_parameter: LayerCalibrationParameter) -> None:
        """Thresholds of the layer itself."""
        self.m_calibrationParameter = calibration_parameter

    @BMNET.checked
    def AddInputCalibrationParameter(self, calibration_parameter: LayerCalibrationParameter) -> None:
        """Thresholds of a layer that it reads, in the order of the inputs."""
        self.m_inputCalibrationParameter.append(calibration_parameter)

    def compute(self, inputs: list[IntArray], function: Callable[..., Any] | None) -> Any:
        """The exact results of the instructions, one int8 array per output (or the only one).

        What the compiler's evaluation of the quantized net uses. By default the inputs are dequantized, `function`
        (the layer's CPU function) is called, and its results are quantized; instructions that round otherwise override
        this.
        """
        if function is None:
            raise UnsupportedError(
                f"the instructions of custom layer '{self.inst_name()}' come without their meaning",
                remedy="register a CPU function for it, or override compute() of the instruction class",
            )
        reals = [dequantize(x, p.threshold_y[0]) for x, p in zip(inputs, self.m_inputCalibrationParameter)]
        param = self.op_.tg_customized_param()
        outs = function(reals, param.i32_params(), param.f32_params())
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)
        return tuple(quantize_real(y, t) for y, t in zip(outs, self.m_calibrationParameter.threshold_y))
