"""What operators mean, as TensorOps: the registry, and what a meaning is given.

The meanings stand beside it, one file per family of the vendor's page; each is a function `(emit, call) -> value(s)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from bmcompiler.errors import ShapeError
from bmcompiler.frontends.bmlang.emit import Emit
from bmcompiler.frontends.bmlang.rows import Row
from bmcompiler.frontends.bmlang.types import DataType
from bmcompiler.ir import TensorType, Value


class Counted(NamedTuple):
    """A result whose length depends on values: as long as it can be, and how many of its first elements count."""

    value: Value
    length: Value


Results = Value | Sequence[Value] | Counted


@dataclass(frozen=True)
class Call:
    """One call of an operator.

    Attributes:
        arguments: by parameter name: Value for a tensor, list of Values, Scalar, or what else the parameter takes.
        outs: element types of the outputs. shapes: what the caller has declared of their shapes, None where nothing.
    """

    row: Row
    arguments: Mapping[str, Any]
    outs: tuple[DataType, ...]
    shapes: tuple[tuple[int, ...] | None, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def out(self) -> str:
        """IR element type of the first output."""
        return self.outs[0].ir

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.row.name

    def typed(self, shape: Sequence[int]) -> TensorType:
        """The type of the first output in a shape."""
        return TensorType(tuple(shape), self.out)

    def wrong(self, reason: str) -> ShapeError:
        """The error for arguments that do not fit; the caller of the meaning adds the names."""
        return ShapeError(reason)


Meaning = Callable[[Emit, Call], Results]
_MEANINGS: dict[str, Meaning] = {}
_FAMILIES = ("matrix", "elements", "stride", "arrange", "select", "pool", "scaling", "shape", "sort", "conveniences")


def meaning(*names: str) -> Callable[[Meaning], Meaning]:
    """Register a function as the meaning of operators."""

    def register(function: Meaning) -> Meaning:
        for name in names:
            assert name not in _MEANINGS, name
            _MEANINGS[name] = function
        return function

    return register


def meanings() -> Mapping[str, Meaning]:
    """Operator name -> meaning."""
    for family in _FAMILIES:  # some may be there already: whoever imports one has that alone
        import_module(f"bmcompiler.frontends.bmlang.meanings.{family}")
    return _MEANINGS
