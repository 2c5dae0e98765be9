"""Classes around custom layers (seed 000, BMNet Library): TensorShape, TGCustomizedParameter, TensorOp, TensorInst.

A frontend plugin fills a `TensorOp`; a code generation plugin, a `TensorInst`, reads one. Names and meaning are the
seed's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from bmcompiler.arith import IntArray, dequantize, quantize_real
from bmcompiler.errors import UnsupportedError, UsageError
from bmcompiler.quant.table import LayerEntry


class TensorShape:
    """Dimensions of a tensor, grown with `add_dim`."""

    def __init__(self, dims: Iterable[int] = ()) -> None:
        self._dims = [int(d) for d in dims]

    def CopyFrom(self, source: TensorShape) -> None:
        """Take the dimensions of another shape."""
        self._dims = list(source._dims)

    def dim_size(self) -> int:
        """Number of dimensions."""
        return len(self._dims)

    def dim(self, index: int) -> int:
        """One dimension. Raises UsageError for an index that does not exist."""
        return self._dims[_checked(index, len(self._dims), "dimension")]

    def add_dim(self, value: int) -> None:
        """A further dimension at the end."""
        self._dims.append(int(value))

    def dims(self) -> tuple[int, ...]:
        """All dimensions at once."""
        return tuple(self._dims)


class TGCustomizedParameter:
    """Numbers a custom layer hands from the frontend to code generation, and its sub type."""

    def __init__(self, sub_type: str = "", i32: Iterable[int] = (), f32: Iterable[float] = ()) -> None:
        self._sub_type, self._i32, self._f32 = sub_type, list(i32), list(f32)

    def sub_type(self) -> str:
        """Name of the custom layer."""
        return self._sub_type

    def set_sub_type(self, name: str) -> None:
        """Name the custom layer."""
        self._sub_type = name

    def i32_param_size(self) -> int:
        """Number of integers."""
        return len(self._i32)

    def f32_param_size(self) -> int:
        """Number of reals."""
        return len(self._f32)

    def i32_param(self, index: int) -> int:
        """One integer. Raises UsageError for an index that does not exist."""
        return self._i32[_checked(index, len(self._i32), "i32 parameter")]

    def f32_param(self, index: int) -> float:
        """One real. Raises UsageError for an index that does not exist."""
        return self._f32[_checked(index, len(self._f32), "f32 parameter")]

    def i32_params(self) -> tuple[int, ...]:
        """All integers at once."""
        return tuple(self._i32)

    def f32_params(self) -> tuple[float, ...]:
        """All floats at once."""
        return tuple(self._f32)

    def add_i32_param(self, value: int) -> None:
        """Append a 32-bit integer. Raises UsageError when it does not fit."""
        if not -(2**31) <= value < 2**31:
            raise UsageError(f"{value} does not fit a 32-bit parameter of custom layer '{self._sub_type}'")
        self._i32.append(int(value))

    def add_f32_param(self, value: float) -> None:
        """A further real at the end."""
        self._f32.append(float(value))


class TensorOp:
    """One op of the net as a plugin sees it.

    Args:
        inputs: shapes of the inputs.
        outputs: shapes of the outputs known so far.
        param: parameters set before (code generation).
        input_addresses, output_addresses: byte offsets in device memory; known during code generation only.
    """

    def __init__(
        self,
        inputs: Iterable[Sequence[int]],
        outputs: Iterable[Sequence[int]] = (),
        param: TGCustomizedParameter | None = None,
        input_addresses: Sequence[int] | None = None,
        output_addresses: Sequence[int] | None = None,
    ) -> None:
        self._inputs = [TensorShape(shape) for shape in inputs]
        self._outputs = [TensorShape(shape) for shape in outputs]
        self._param = param or TGCustomizedParameter()
        self._input_addresses, self._output_addresses = input_addresses, output_addresses

    def input_shape_size(self) -> int:
        """Number of inputs."""
        return len(self._inputs)

    def output_shape_size(self) -> int:
        """Number of outputs."""
        return len(self._outputs)

    def input_shape(self, index: int) -> TensorShape:
        """Shape of an input. Raises UsageError for an index that does not exist."""
        return self._inputs[_checked(index, len(self._inputs), "input")]

    def output_shape(self, index: int) -> TensorShape:
        """Shape of an output. Raises UsageError for an index that does not exist."""
        return self._outputs[_checked(index, len(self._outputs), "output")]

    def add_output_shape(self) -> TensorShape:
        """A new output, to be filled in."""
        self._outputs.append(TensorShape())
        return self._outputs[-1]

    def global_input(self, index: int) -> int:
        """Byte offset of an input in device memory."""
        return _address(self._input_addresses, index, "input")

    def global_output(self, index: int) -> int:
        """Byte offset of an output in device memory."""
        return _address(self._output_addresses, index, "output")

    def mutable_tg_customized_param(self) -> TGCustomizedParameter:
        """The parameters, to be filled in."""
        return self._param

    def tg_customized_param(self) -> TGCustomizedParameter:
        """The parameters."""
        return self._param


def _checked(index: int, count: int, what: str) -> int:
    if not 0 <= index < count:
        raise UsageError(f"{what} {index} does not exist, there are {count}")
    return index


def _address(addresses: Sequence[int] | None, index: int, what: str) -> int:
    if addresses is None:
        raise UsageError(f"the address of {what} {index} is known during code generation only")
    return addresses[_checked(index, len(addresses), what)]


class TensorInst(ABC):
    """Turns one op into instructions of a chip. One object is made per op, without arguments; then `op_` is set.

    `target` names the chip; a target's own subclass sets it.
    """

    target: ClassVar[str] = ""
    op_: TensorOp

    @abstractmethod
    def inst_name(self) -> str:
        """The sub type of the ops it serves."""

    @abstractmethod
    def dump(self) -> None:
        """Print what is worth knowing about the op."""

    @abstractmethod
    def encode(self) -> None:
        """Emit the instructions."""


class TensorFixedInst(TensorInst):
    """A `TensorInst` for integers: it knows the thresholds of its own results and of its inputs.

    `m_calibrationParameter.threshold_y[i]` is the real magnitude that 128 stands for in result i, and
    `m_inputCalibrationParameter[i].threshold_y[0]` in input i.
    """

    def __init__(self) -> None:
        self.m_calibrationParameter = LayerEntry("")
        self.m_inputCalibrationParameter: list[LayerEntry] = []

    def SetCalibrationParameter(self, calibration_parameter: LayerEntry) -> None:
        """Thresholds of the layer itself."""
        self.m_calibrationParameter = calibration_parameter

    def AddInputCalibrationParameter(self, calibration_parameter: LayerEntry) -> None:
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
