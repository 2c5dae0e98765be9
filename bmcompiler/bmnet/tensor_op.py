"""One op as plugins see it (as in the vendor's BMNet library): TensorShape, TGCustomizedParameter, TensorOp.

A layer class fills a `TensorOp`, an instruction class reads one. Names and meaning are the vendor's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bmcompiler.bmnet.prototypes import BMNET
from bmcompiler.errors import UsageError


@BMNET.struct
class TensorShape:
    """Dimensions of a tensor, grown with `add_dim`."""

    def __init__(self, dims: Iterable[int] = ()) -> None:
        self._dims = [int(d) for d in dims]

    @BMNET.checked
    def CopyFrom(self, source: TensorShape) -> None:
        """Take the dimensions of another shape."""
        self._dims = list(source._dims)

    def dim_size(self) -> int:
        """Number of dimensions."""
        return len(self._dims)

    @BMNET.checked
    def dim(self, index: int) -> int:
        """One dimension. Raises UsageError for an index that does not exist."""
        return self._dims[_checked(index, len(self._dims), "dimension")]

    @BMNET.checked
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

    @BMNET.checked
    def set_sub_type(self, name: str) -> None:
        """Name the custom layer."""
        self._sub_type = name

    def i32_param_size(self) -> int:
        """Number of integers."""
        return len(self._i32)

    def f32_param_size(self) -> int:
        """Number of reals."""
        return len(self._f32)

    @BMNET.checked
    def i32_param(self, index: int) -> int:
        """One integer. Raises UsageError for an index that does not exist."""
        return self._i32[_checked(index, len(self._i32), "i32 parameter")]

    @BMNET.checked
    def f32_param(self, index: int) -> float:
        """One real. Raises UsageError for an index that does not exist."""
        return self._f32[_checked(index, len(self._f32), "f32 parameter")]

    def i32_params(self) -> tuple[int, ...]:
        """All integers at once."""
        return tuple(self._i32)

    def f32_params(self) -> tuple[float, ...]:
        """All floats at once."""
        return tuple(self._f32)

    @BMNET.checked
    def add_i32_param(self, value: int) -> None:
        """Append a 32-bit integer. Raises UsageError when it does not fit."""
        if not -(2**31) <= value < 2**31:
            raise UsageError(f"{value} does not fit a 32-bit parameter of custom layer '{self._sub_type}'")
        self._i32.append(int(value))

    @BMNET.checked
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

    @BMNET.checked
    def input_shape(self, index: int) -> TensorShape:
        """Shape of an input. Raises UsageError for an index that does not exist."""
        return self._inputs[_checked(index, len(self._inputs), "input")]

    @BMNET.checked
    def output_shape(self, index: int) -> TensorShape:
        """Shape of an output. Raises UsageError for an index that does not exist."""
        return self._outputs[_checked(index, len(self._outputs), "output")]

    def add_output_shape(self) -> TensorShape:
        """A new output, to be filled in."""
        self._outputs.append(TensorShape())
        return self._outputs[-1]

    @BMNET.checked
    def global_input(self, index: int) -> int:
        """Byte offset of an input in device memory."""
        return _address(self._input_addresses, index, "input")

    @BMNET.checked
    def global_output(self, index: int) -> int:
        """Byte offset of an output in device memory."""
        return _address(self._output_addresses, index, "output")

    def mutable_tg_customized_param(self) -> TGCustomizedParameter:
        """The parameters, to be filled in."""
        return self._param

    def tg_customized_param(self) -> TGCustomizedParameter:
        """The parameters of the op as the model file holds them."""
        return self._param


def _checked(index: int, count: int, what: str) -> int:
    if not 0 <= index < count:
        raise UsageError(f"{what} {index} does not exist, there are {count}")
    return index


def _address(addresses: Sequence[int] | None, index: int, what: str) -> int:
    if addresses is None:
        raise UsageError(f"the address of {what} {index} is known during code generation only")
    return addresses[_checked(index, len(addresses), what)]
