"""Tensors and scalars of a BMLang program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bmcompiler.errors import UsageError
from bmcompiler.frontends.bmlang.fields import MOST_AXES, member, need_size, real, shown, wholes
from bmcompiler.frontends.bmlang.numbers import all_fit, data_type, has_numbers, has_reals, holds, nearest, numpy_type
from bmcompiler.frontends.bmlang.types import DataType, TensorKind
from bmcompiler.numeric.arrays import Array

_SHOWN = 8
_MATRIX = 2
"""Axes of a matrix."""


class Scalar:
    """A number with an element type (FLOAT32 unless said otherwise). Raises UsageError if it does not fit."""

    __slots__ = ("dtype", "value")

    def __init__(self, value: float, dtype: Any = DataType.FLOAT32) -> None:
        kind = data_type(dtype)
        given = real(value)
        if given is None or not holds(kind, given):
            raise UsageError(f"{shown(value)} is no {kind.name} number")
        object.__setattr__(self, "value", nearest(kind, given))
        object.__setattr__(self, "dtype", kind)

    value: float
    dtype: DataType

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Scalar cannot be changed")

    def __repr__(self) -> str:
        return f"Scalar({self.value!r}, {self.dtype.name})"


class Tensor:
    """A tensor: a name, an element type, a shape, and data once it is set or computed.

        Tensor()                                        # an output whose type and shape follow
        Tensor("x", FLOAT32, 1, 3, 8, 8)                # name, type, sizes
        Tensor("x", FLOAT32, [1, 3, 8, 8])              # name, type, shape
        Tensor("w", FLOAT32, COEFF_TENSOR, [8, 3, 1, 1])
        Tensor(FLOAT32, 1, 3, 8, 8)                     # without a name
        Tensor(data=array, name="x")                    # type and shape from a numpy array

    Name, data, element type and tensor kind can each be said once (bmlang.md 7.2). Tensors compare by identity, so that
    they can be keys; the comparison operators except == and != give tensors.
    """

    def __init__(
        self,
        *arguments: Any,
        name: str | None = None,
        dtype: Any = None,
        shape: Sequence[int] | None = None,
        ttype: TensorKind | None = None,
        data: ArrayLike | None = None,
    ) -> None:
        self._name: str | None = None
        self._dtype: DataType | None = None
        self._shape: tuple[int, ...] | None = None
        self._ttype: TensorKind | None = None
        self._given: Array | None = None
        self.array: Array | None = None
        """Its data, set or computed; None before."""
        self.constant = False
        """Whether it is stored with the program: COEFF_TENSOR, or by `constdata`."""
        self.used = False
        """Whether an operator has read or written it."""
        self.missing = ""
        """Why a compiled program cannot have it; empty where it can."""
        self.count: Tensor | None = None
        """How many of its first elements count (INT32, one element), where their number depends on values."""
        rest = self._positional(list(arguments))
        name = rest.pop("name", name)
        dtype = rest.pop("dtype", dtype)
        shape = rest.pop("shape", shape)
        ttype = rest.pop("ttype", ttype)
        if name is not None:
            self.set_name(name)
        if dtype is not None:
            self.set_dtype(dtype)
        if shape is not None:
            self._shape = _shape(shape)
        if ttype is not None:
            self.set_tensor_type(ttype)
        if data is not None:
            self.set_data(data)

    @staticmethod
    def _positional(arguments: list[Any]) -> dict[str, Any]:
        """Name, type, kind and shape from the vendor's positional forms. Raises UsageError."""
        found: dict[str, Any] = {}
        if arguments and (isinstance(arguments[0], str) or arguments[0] is None):
            found["name"] = arguments.pop(0)
        if arguments:
            found["dtype"] = data_type(arguments.pop(0))
        if arguments and isinstance(arguments[0], TensorKind):
            found["ttype"] = arguments.pop(0)
        if len(arguments) == 1 and isinstance(arguments[0], (list, tuple)):
            found["shape"] = arguments[0]
        elif arguments:
            sizes = list(_shape(arguments, len(arguments)))
            while sizes and not sizes[-1]:  # the vendor's default for a size that does not exist
                sizes.pop()
            found["shape"] = sizes
        return found

    # -- properties ----------------------------------------------------------------------------------------------------
    @property
    def name(self) -> str | None:
        """Its name, None where it has none."""
        return self._name

    @property
    def dtype(self) -> DataType | None:
        """Its element type, None before it is known."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Its sizes, None before they are known."""
        return self._shape

    @property
    def ttype(self) -> TensorKind:
        """NEURON_TENSOR unless set otherwise."""
        return TensorKind.NEURON_TENSOR if self._ttype is None else self._ttype

    def get_dtype(self) -> DataType | None:
        """The same as `dtype`."""
        return self._dtype

    def set_name(self, name: str) -> None:
        """Give it a name. Raises UsageError when it has one."""
        self._once("name", self._name)
        if not isinstance(name, str) or not name:
            raise UsageError(f"the name of a tensor is a text, got {shown(name)}")
        self._name = name

    def set_dtype(self, dtype: Any) -> None:
        """Say its element type. Raises UsageError when it has one."""
        self._once("element type", self._dtype)
        self._dtype = data_type(dtype)

    def set_tensor_type(self, ttype: TensorKind) -> None:
        """Say whether it is an activation or a constant. Raises UsageError when that has been said."""
        self._once("tensor type", self._ttype)
        self._ttype = member(TensorKind, ttype)
        if self._ttype is None:
            raise UsageError(f"the tensor type is NEURON_TENSOR or COEFF_TENSOR, got {shown(ttype)}")
        self.constant = self._ttype == TensorKind.COEFF_TENSOR

    def set_data(self, data: ArrayLike) -> None:
        """Give it data, which is copied: an array, or bytes in the declared shape and type.

        Raises UsageError when it has data, or when shape, type or values do not fit what was declared.
        """
        self._once("data", self._given)
        if isinstance(data, (bytes, bytearray, memoryview)):
            data = self._from_bytes(bytes(data))
        array = self._numbers(data)
        dtype = data_type(array.dtype) if self._dtype is None else self._dtype
        kind = numpy_type(dtype)
        shape = array.shape if self._shape is None else self._shape
        if array.size != math.prod(shape) or (array.ndim > 1 and _without_ones(array.shape) != _without_ones(shape)):
            raise UsageError(f"{self._label()} has shape {list(shape)}, its data {list(array.shape)}")
        if not all_fit(array, kind):
            raise UsageError(f"{self._label()} holds {dtype.name} numbers, its data does not")
        self._dtype, self._shape = dtype, _shape(list(shape))
        self._given = np.array(array.reshape(shape), kind, order="C")
        self.array = self._given

    def get_data(self) -> Array:
        """A copy of its data, set or computed. Raises UsageError when there is none."""
        if self.array is None:
            raise UsageError(
                f"{self._label()} has no data",
                remedy="set_data gives it some; operators compute it in the modes COMPUTE_CPU and BOTH",
            )
        return np.array(self.array)

    # -- for operators -------------------------------------------------------------------------------------------------
    def become(self, dtype: DataType, shape: tuple[int, ...] | None, array: Array | None, missing: str = "") -> None:
        """Take the result of an operator."""
        self._dtype, self._shape, self.array, self.missing = dtype, shape, array, missing
        self.count = None

    @property
    def given(self) -> Array | None:
        """The data of `set_data`."""
        return self._given

    def _once(self, what: str, found: object) -> None:
        if found is not None:
            raise UsageError(f"{self._label()} has its {what} already, which can be set once")

    def _numbers(self, data: ArrayLike) -> Array:
        """Data as an array; Python's own numbers become FLOAT32 or INT32 where no type is declared."""
        try:
            array = np.array(data)
        except (ValueError, TypeError, OverflowError):
            array = np.array(None)
        if not has_numbers(array.dtype):
            raise UsageError(f"{self._label()} takes an array of numbers as its data, got {shown(data)}")
        own = {np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32}.get(array.dtype)
        if own is not None and self._dtype is None and not isinstance(data, (np.ndarray, np.generic)):
            if not all_fit(array, np.dtype(own)):
                raise UsageError(f"{self._label()} needs an element type: its data does not fit {np.dtype(own).name}")
            return array.astype(own)
        return array

    def _from_bytes(self, data: bytes) -> Array:
        if self._dtype is None or self._shape is None:
            raise UsageError(f"{self._label()} needs an element type and a shape before it takes bytes")
        kind = numpy_type(self._dtype)
        if len(data) != math.prod(self._shape) * kind.itemsize:
            raise UsageError(f"{self._label()} has {math.prod(self._shape) * kind.itemsize} bytes, got {len(data)}")
        return np.frombuffer(data, kind).reshape(self._shape)

    def _label(self) -> str:
        return f"tensor '{self._name}'" if self._name else "the tensor"

    def __repr__(self) -> str:
        parts = [repr(self._name)] if self._name else []
        parts.append(self._dtype.name if self._dtype is not None else "type to come")
        parts.append(str(list(self._shape)) if self._shape is not None else "shape to come")
        if self.constant:
            parts.append("constant")
        if self.array is not None:
            flat = self.array.ravel()
            numbers = ", ".join(f"{float(x):.6g}" if has_reals(flat.dtype) else str(x) for x in flat[:_SHOWN])
            parts.append(f"[{numbers}{', ...' if flat.size > _SHOWN else ''}]")
        return f"Tensor({', '.join(parts)})"

    # -- Python's operators --------------------------------------------------------------------------------------------
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Its data for numpy, copied."""
        return np.asarray(self.get_data(), dtype)

    def __bool__(self) -> bool:
        raise UsageError(
            f"{self._label()} is neither true nor false", remedy="choose by condition_select, or read get_data()"
        )

    __array_ufunc__ = None  # numpy leaves `array + tensor` to the tensor

    def __add__(self, other: Any) -> Tensor:
        return _apply("add", "adds", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _apply("add", "adds", self, other)

    def __sub__(self, other: Any) -> Tensor:
        return _apply("sub", "subs", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _call("rsubs", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _apply("mul", "muls", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _apply("mul", "muls", self, other)

    def __truediv__(self, other: Any) -> Tensor:
        return _apply("div", "divs", self, other)

    def __matmul__(self, other: Tensor) -> Tensor:
        flat = all(isinstance(each, Tensor) and len(each.shape or ()) == _MATRIX for each in (self, other))
        return _call("matrix_mul" if flat else "batch_matmul", [self, other])

    def __getitem__(self, key: Any) -> Tensor:
        """Parts of it as numpy takes them; see `slicing.part`."""
        from bmcompiler.frontends.bmlang.slicing import part

        return part(self, key)

    def __len__(self) -> int:
        """Elements along its first axis. Raises UsageError where there is none."""
        if not self._shape:
            raise UsageError(f"{self._label()} has no {'shape yet' if self._shape is None else 'axis'} to count along")
        return self._shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[index] for index in range(len(self)))

    def __neg__(self) -> Tensor:
        return _call("rsubs", 0, self)

    def __gt__(self, other: Any) -> Tensor:
        return _apply("gt", "gts", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _apply("ge", "ges", self, other)

    def __lt__(self, other: Any) -> Tensor:
        return _apply("lt", "lts", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _apply("le", "les", self, other)

    def __and__(self, other: Any) -> Tensor:
        return _apply("bit_and", "bit_ands", self, other)

    def __or__(self, other: Any) -> Tensor:
        return _apply("bit_or", "bit_ors", self, other)

    def __xor__(self, other: Any) -> Tensor:
        return _apply("bit_xor", "bit_xors", self, other)

    def __lshift__(self, other: Any) -> Tensor:
        return _apply("arith_lshift", "arith_lshifts", self, other)

    def __rshift__(self, other: Any) -> Tensor:
        return _apply("arith_rshift", "arith_rshifts", self, other)


def _apply(name: str, with_scalar: str, tensor: Tensor, other: Any) -> Tensor:
    return _call(name if isinstance(other, Tensor) else with_scalar, tensor, other)


def _call(name: str, *arguments: Any) -> Tensor:
    from bmcompiler.frontends.bmlang.operator import OPERATORS

    call: Callable[..., Tensor] = OPERATORS[name]
    return call(*arguments)


def _without_ones(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def _shape(sizes: object, axes: int = MOST_AXES) -> tuple[int, ...]:
    shape = wholes(sizes)
    if shape is None:
        raise UsageError(f"the sizes of a tensor are whole numbers, got {shown(sizes)}")
    if any(size < 0 for size in shape):
        raise UsageError(f"the sizes of a tensor are 0 or more, got {shown(sizes)}")
    need_size(shape, axes)
    return shape
