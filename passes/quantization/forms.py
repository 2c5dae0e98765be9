"""What conversions ask of a scheme: how each kind of integer op is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bmcompiler.ir import Value
from bmcompiler.numeric.arrays import Array, Floats
from bmcompiler.ops.base import TensorOp
from bmcompiler.ops.layers.nn import Convolution, Matmul
from bmcompiler.passes.quantization.building import Building
from bmcompiler.passes.quantization.formats import F, no_scheme


@dataclass(frozen=True)
class Affine:
    """source * weight[c] + bias[c], c along `axis`. like: the old weight that gives the new one its name."""

    source: Value
    weight: Array
    bias: Array | None
    axis: int
    like: Value | None = None


class Forms(Building[F]):
    """A `Building` with the forms that differ between schemes. All give the value that stands for `op.result`.

    A format is that of a whole tensor of activations. Nothing here speaks of the scales of weights: `layer` and
    `per_channel` get real weights, and how many scales these have, and in which op they end, is the scheme's own.
    Every form raises NoInt8Form where the scheme or the target has none.
    """

    def meanings(self, format: F) -> Floats:
        """What the 256 bytes of a look-up table stand for, in its order: entry k answers for the byte k."""
        raise no_scheme(self)

    def top(self, format: F) -> float:
        """The magnitude at which a format saturates."""
        raise no_scheme(self)

    def table_format(self, value: Value, reals: Array) -> F:
        """The format of a value of the old function that a table makes, all its values being `reals`."""
        return self.wanted(value)

    def table_integers(self, op: TensorOp, reals: Array, wanted: F) -> Array:
        """The integers of a table for a function of one tensor, from its real results."""
        return self.integers(reals, wanted)

    def layer(self, op: Convolution | Matmul, weight: Array, bias: Array | None) -> Value:
        """A conv, deconv or matmul with constant weights, which are its second operand."""
        raise no_scheme(self)

    def per_channel(self, op: TensorOp, affine: Affine) -> Value:
        """A number per channel times a tensor, plus another."""
        raise no_scheme(self)

    def matrix_product(self, op: Matmul, left: Value, right: Value) -> Value:
        """The matmul of two integer tensors, without bias."""
        raise no_scheme(self)

    def total(self, op: TensorOp, operands: Sequence[Value]) -> Value:
        """The sum, or for "sub" the difference, of two integer tensors of the shape of the result."""
        raise no_scheme(self)

    def product(self, op: TensorOp, operands: Sequence[Value]) -> Value:
        """The product of two integer tensors, element by element."""
        raise no_scheme(self)

    def times(self, op: TensorOp, x: Value, factor: float) -> Value:
        """An integer tensor times a real number."""
        raise no_scheme(self)

    def average(self, op: TensorOp, x: Value, divisor: int, attributes: Mapping[str, Any]) -> Value:
        """The sum of each window of an avg_pool with these attributes, over `divisor`."""
        raise no_scheme(self)
