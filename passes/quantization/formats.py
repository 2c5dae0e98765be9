"""What a scheme says of integer tensors: the formats that they may have, and how one becomes another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from bmcompiler.ir import Operation, TensorType, Value
from bmcompiler.numeric.arrays import Array

F = TypeVar("F")
"""What a scheme says of an integer tensor: a threshold (`lowering`), or element type, scale and zero point."""


class Formats(Generic[F]):
    """What a scheme defines. A format `F` is that of a whole tensor.

    Integers with a scale per channel are weights only, and those have no `F`.
    """

    def wanted(self, value: Value) -> F:
        """What the plan wants for a value of the old function."""
        raise no_scheme(self)

    def format_of(self, value: Value) -> F:
        """What an integer value of the new function is."""
        raise no_scheme(self)

    def type_of(self, shape: Sequence[int], wanted: F) -> TensorType:
        """The type of an integer tensor."""
        raise no_scheme(self)

    def same(self, a: F, b: F) -> bool:
        """Whether two formats are equal but for rounding."""
        raise no_scheme(self)

    def of_constant(self, array: Array) -> F:
        """The format in which a constant loses least."""
        raise no_scheme(self)

    def integers(self, array: Array, wanted: F) -> Array:
        """A constant in a format."""
        raise no_scheme(self)

    def rescale(self, value: Value, wanted: F) -> Value:
        """An integer value in another format."""
        raise no_scheme(self)

    def note_float(self, op: Operation, reason: str) -> None:
        """Mark an op of the new function that stays in float."""
        raise no_scheme(self)

    asked_for_io = False
    """Whether `integer_io` is a wish: then inputs are integers even where only float ops read them."""
    rounding: Mapping[str, Any] = {}
    """Attributes of `quantize`."""


def no_scheme(building: object) -> TypeError:
    """The error of a method that a scheme has to define."""
    return TypeError(f"{type(building).__name__} is no building of a scheme")
