"""One ONNX node as its converter sees it: inputs as values or constants, attributes with checked types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx

from bmcompiler.errors import FileFormatError, ShapeError, UnsupportedError
from bmcompiler.frontends.onnx.registry import Tensor
from bmcompiler.frontends.onnx.tensors import NARROW, to_array
from bmcompiler.ir import Block, Function, TensorType, Value, type_of_array
from bmcompiler.spelling import spelled

if TYPE_CHECKING:
    from collections.abc import Callable

_A = onnx.AttributeProto
_Int: TypeAlias = int  # `Node` has methods called int and float
_Float: TypeAlias = float
# attribute type -> how to read it
_READERS: dict[int, Callable[[onnx.AttributeProto], Any]] = {
    _A.FLOAT: lambda a: float(a.f),
    _A.INT: lambda a: int(a.i),
    _A.STRING: lambda a: a.s.decode("utf-8", "replace"),
    _A.FLOATS: lambda a: tuple(float(v) for v in a.floats),
    _A.INTS: lambda a: tuple(int(v) for v in a.ints),
    _A.TENSOR: lambda a: a.t,
    _A.GRAPH: lambda a: a.g,
    _A.STRINGS: lambda a: tuple(v.decode("utf-8", "replace") for v in a.strings),
}


class Node:
    """A node during its conversion.

    `type`, `name`, `opset`, `proto`; operands through `input`/`constant`, attributes through `int`, `ints`, `float`,
    `string`, `flag`. Attributes that a converter never asks for are reported, so nothing is dropped in silence.
    """

    def __init__(
        self,
        proto: onnx.NodeProto,
        name: str,
        opset: int,
        tensors: Sequence[Tensor | None],
        *,
        materialize: Callable[[str, np.ndarray], Value],
        folder: Path | None = None,
    ) -> None:
        self.proto, self.name, self.opset, self.folder = proto, name, opset, folder
        self.tensors = list(tensors)
        self._materialize = materialize
        self._attributes = {a.name: a for a in proto.attribute}
        self._unread = set(self._attributes)

    @property
    def type(self) -> str:
        """The op type."""
        return self.proto.op_type

    # -- operands -----------------------------------------------------------------------
    def __len__(self) -> int:
        """Number of inputs, absent optional ones at the end not counted."""
        return len(self.tensors)

    def has(self, index: int) -> bool:
        """Whether input `index` is there."""
        return index < len(self.tensors) and self.tensors[index] is not None

    def tensor(self, index: int) -> Tensor:
        """An input as it is known: value or constant. Raises FileFormatError when the node lacks it."""
        tensor = self.tensors[index] if index < len(self.tensors) else None
        if tensor is None:
            raise FileFormatError(f"input {index} is missing")
        return tensor

    def input(self, index: int) -> Value:
        """An input as a value; constants become weights."""
        tensor = self.tensor(index)
        return tensor if isinstance(tensor, Value) else self._materialize(self.proto.input[index], tensor)

    def optional(self, index: int) -> Value | None:
        """An input as a value, None when it is absent."""
        return self.input(index) if self.has(index) else None

    def inputs(self) -> list[Value]:
        """All inputs of a variadic op. Raises FileFormatError when there is none."""
        if not self.tensors:
            raise FileFormatError("has no inputs")
        return [self.input(i) for i in range(len(self.tensors))]

    def is_constant(self, index: int) -> bool:
        """Whether input `index` is there and known now."""
        return self.has(index) and isinstance(self.tensors[index], np.ndarray)

    def constant(self, index: int) -> np.ndarray:
        """An input that must be known now. Raises UnsupportedError when it is computed from the net's inputs."""
        tensor = self.tensor(index)
        if isinstance(tensor, Value):
            behind = ", ".join(f"'{name}'" for name in inputs_behind(tensor))
            raise UnsupportedError(
                f"input {index} ('{self.proto.input[index]}') must be a constant, but depends on what the net's "
                f"inputs hold: {behind}",
                remedy="where one of them always holds the same (a rate, a mode, a limit), give the model an "
                f"initializer of its name with that value; else cut the model with {spelled('outputs')}",
            )
        return tensor

    def constant_ints(self, index: int) -> tuple[int, ...] | None:
        """A constant list (or single) of integers; None when the input is absent."""
        if not self.has(index):
            return None
        array = self.constant(index)
        if array.dtype.kind not in "iu" or array.ndim > 1:
            raise FileFormatError(f"input {index} must be a list of integers, got {array.dtype}{list(array.shape)}")
        return tuple(int(v) for v in array.reshape(-1))

    def scalar(self, index: int) -> Any:
        """A constant of one element as a Python number; None when the input is absent."""
        if not self.has(index):
            return None
        array = self.constant(index)
        if array.size != 1:
            raise FileFormatError(f"input {index} must be a single number, got shape {list(array.shape)}")
        return array.reshape(-1)[0].item()

    def whole(self, index: int) -> _Int:
        """A constant of one whole number, which must be there; the fraction of a real number does not count."""
        value = self.scalar(index)
        if value is None or not abs(value) <= 2**62:
            raise FileFormatError(f"input {index} must be a whole number, got {value}")
        return _Int(value)

    def tensor_type(self, index: int) -> TensorType:
        """The type of an input, value or constant."""
        tensor = self.tensor(index)
        if isinstance(tensor, Value):
            return tensor.type
        return self.input(index).type if tensor.dtype.name in NARROW else type_of_array(tensor)  # which refuses them

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """Dimensions of an input."""
        return tuple(self.tensor(index).shape)

    def rank(self, index: int = 0, least: int = 0) -> int:
        """Number of axes of an input. Raises ShapeError when it has fewer than `least`."""
        rank = len(self.shape(index))
        if rank < least:
            raise ShapeError(f"input {index} must have {least} axes or more, got shape {list(self.shape(index))}")
        return rank

    # -- attributes ---------------------------------------------------------------------
    def int(self, name: str, default: int | None = None) -> int:
        """An integer attribute. Raises FileFormatError when it is missing without default, or of another type."""
        return self._attribute(name, _A.INT, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """An integer attribute that means yes or no."""
        return bool(self.int(name, int(default)))

    def float(self, name: str, default: float | None = None) -> float:
        """A real attribute; errors as `int`."""
        return self._attribute(name, _A.FLOAT, default)

    def string(self, name: str, default: str | None = None) -> str:
        """A text attribute; errors as `int`."""
        return self._attribute(name, _A.STRING, default)

    def ints(self, name: str, default: Sequence[_Int] | None = None) -> tuple[_Int, ...]:
        """A list of integers; errors as `int`."""
        return tuple(self._attribute(name, _A.INTS, default))

    def floats(self, name: str, default: Sequence[_Float] | None = None) -> tuple[_Float, ...]:
        """A list of reals; errors as `int`."""
        return tuple(self._attribute(name, _A.FLOATS, default))

    def strings(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """A list of texts; errors as `int`."""
        return tuple(self._attribute(name, _A.STRINGS, default))

    def array(self, name: str) -> np.ndarray:
        """A tensor attribute, read from its file where it lies in one."""
        return to_array(self._attribute(name, _A.TENSOR, None), self.folder)

    def graph(self, name: str) -> onnx.GraphProto:
        """A graph attribute (the body of a loop or branch)."""
        return self._attribute(name, _A.GRAPH, None)

    def has_attribute(self, name: str) -> bool:
        """Whether the file states an attribute."""
        return name in self._attributes

    def ignore(self, *names: str) -> None:
        """These attributes do not change the result at inference."""
        self._unread.difference_update(names)

    @property
    def unread(self) -> list[str]:
        """Names of attributes that the converter has not asked for, sorted."""
        return sorted(self._unread)

    def _attribute(self, name: str, kind: _Int, default: Any) -> Any:
        self._unread.discard(name)
        attribute = self._attributes.get(name)
        if attribute is None:
            if default is None:
                raise FileFormatError(f"attribute '{name}' is missing")
            return default
        if attribute.type != kind:
            wanted, found = _A.AttributeType.Name(kind), _kind_name(attribute.type)
            raise FileFormatError(f"attribute '{name}' must be of type {wanted}, got {found}")
        return _READERS[kind](attribute)


def _kind_name(kind: int) -> str:
    return str(_A.AttributeType.Name(kind)) if kind in _A.AttributeType.values() else str(kind)


# -- checks that many converters share ----------------------------------------------
def axis_of(axis: int, rank: int) -> int:
    """A possibly negative axis as an index. Raises ShapeError outside -rank..rank-1."""
    if not -rank <= axis < rank:
        raise ShapeError(f"axis {axis} does not exist in a tensor of {rank} axes")
    return axis % rank


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Like `axis_of` for a list, sorted. Raises ShapeError when one is named twice."""
    found = sorted(axis_of(axis, rank) for axis in axes)
    if len(set(found)) != len(found):
        raise ShapeError(f"axes {list(axes)} name an axis twice")
    return tuple(found)


def choice(what: str, value: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """Raises UnsupportedError listing the known values."""
    if value not in known:
        raise UnsupportedError(f"{what} '{value}' is not supported. Supported: {', '.join(known)}")
    return value


def inputs_behind(value: Value) -> list[str]:
    """Names of the net's inputs that a value is computed from, in the net's order."""
    seen, waiting = {value}, [value]
    while waiting:
        op = waiting.pop().op
        new = [] if op is None else [operand for operand in op.operands if operand not in seen]
        seen.update(new)
        waiting += new
    arguments = sorted((each for each in seen if each.op is None), key=lambda each: each.index)
    functions = [each.owner.owner for each in arguments if isinstance(each.owner, Block)]
    return [f.input_names[each.index] for f, each in zip(functions, arguments) if isinstance(f, Function)]
